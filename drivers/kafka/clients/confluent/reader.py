"""Reading with confluent-kafka, with a group and without one."""

import contextlib
import logging
import operator
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from notifier_kafka.contract.driver import Delivery, Partition, Record
from notifier_kafka.errors import MessagingException

from .connection import ConnectionState, attempt, create, translate

LOG = logging.getLogger(__name__)

IGNORED = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - their public names
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    # Reported after a commit that hung for longer than the poll interval; this poll joins again.
    KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001
)
# A reader is in no group, but librdkafka asks for the coordinator of its group.id.
IGNORED_BY_READER = (*IGNORED, KafkaError.GROUP_AUTHORIZATION_FAILED)

# Faster than the constructors of named tuples, which are Python code.
_new: Any = tuple.__new__
_CONTENT = operator.itemgetter(1)
_HEADERS_SKIPPED = (
    "Read without its headers: topic %s partition %d offset %d: the name of a header is not UTF-8"
)


class Reader:
    """Reads one partition."""

    def __init__(self, config: dict[str, Any], partition: Partition, offset: int) -> None:
        self._state = ConnectionState(config)
        # librdkafka requires a group.id although no group is joined.
        own = {"group.id": "notifier-kafka-reader", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = create(confluent_kafka.Consumer, config | own, self._state)
        self._consumer.assign([TopicPartition(*partition, offset)])
        self._position = offset

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deliveries, end = consume(self._consumer, limit, timeout, self._state, IGNORED_BY_READER)
        if deliveries:
            self._position = deliveries[-1].offset + 1
        self._position = max(self._position, end)
        return deliveries

    def position(self) -> int:
        return self._position

    def close(self) -> None:
        self._consumer.close()


def consume(
    consumer: Any, limit: int, timeout: float, state: ConnectionState, ignored: Sequence[int] = IGNORED
) -> tuple[list[Delivery], int]:
    """Take what is there, or wait for a first record; also return where the partition ends, or -1."""
    messages = attempt("poll", lambda: consumer.consume(limit, 0))
    if not messages and (first := attempt("poll", lambda: consumer.poll(timeout))) is not None:
        messages = [first]
        # The first record must go on, also when this fails; the next poll raises it again.
        with contextlib.suppress(MessagingException):
            messages += attempt("poll", lambda: consumer.consume(limit - 1, 0)) if limit > 1 else []
    end = -1
    good = []
    for message in messages:
        error = message.error()
        if error is None:
            good.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            end = message.offset()
        elif error.code() not in ignored:
            state.down = translate(error, _named(message))
    if good:
        state.down = None
    elif (reason := state.reason()) is not None:
        state.down = None
        raise reason
    return _deliveries(good), end


def _named(message: Any) -> str:
    """Say what an error is about: the partition where only that is stopped, else the topic."""
    if message.error().code() == KafkaError._BAD_COMPRESSION:  # noqa: SLF001 - its public name
        return f"{message.topic()}[{message.partition()}]"
    return f"topic {message.topic()}" if message.topic() else "poll"


def _deliveries(messages: Sequence[Any]) -> list[Delivery]:
    """Make deliveries. In one function, because it runs for every record."""
    made = []
    place, known = None, ("", -1)
    for message in messages:
        at = topic, number = message.topic(), message.partition()
        if at != known or place is None:
            # Many in a row are of one partition.
            place, known = Partition(topic, number), at
        try:
            headers = message.headers() or ()
            empty = None in map(_CONTENT, headers)
        except (SystemError, UnicodeError):
            # The library detects a name that is not UTF-8, and raises that only in a later call.
            LOG.warning(_HEADERS_SKIPPED, topic, number, message.offset())
            headers, empty = (), False
        if empty:
            headers = [(name, content or b"") for name, content in headers]
        record = _new(Record, (topic, message.value(), message.key(), tuple(headers)))
        made.append(_new(Delivery, (record, place, message.offset(), message.timestamp()[1] / 1000)))
    return made
