"""confluent-kafka behind the seam: reading, with a group and without one."""

import contextlib
import logging
import operator
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from notifier_kafka.contract.driver import Delivery, Partition, Record
from notifier_kafka.errors import MessagingException

from .connection import Link, attempt, made, translate

LOG = logging.getLogger(__name__)

AWAITED = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - their public names
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    # Said after a commit that hung for longer than the poll interval; this poll joins again.
    KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001
)
# A reader is in no group, but librdkafka looks for the coordinator of the one that it wants named.
NEEDLESS = (*AWAITED, KafkaError.GROUP_AUTHORIZATION_FAILED)

# Past the constructors of named tuples, which check again what is known here.
_new: Any = tuple.__new__
_CONTENT = operator.itemgetter(1)
_UNREAD = "Read without its headers: topic %s partition %d offset %d: the name of one is not UTF-8"


class Reader:
    """Reads one partition."""

    def __init__(self, config: dict[str, Any], partition: Partition, offset: int) -> None:
        self._link = Link(config)
        # librdkafka asks for a group although none is joined.
        own = {"group.id": "notifier-kafka-reader", "enable.auto.commit": False, "enable.partition.eof": True}
        self._consumer = made(confluent_kafka.Consumer, config | own, self._link)
        self._consumer.assign([TopicPartition(*partition, offset)])
        self._position = offset

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deliveries, end = consume(self._consumer, limit, timeout, self._link, NEEDLESS)
        if deliveries:
            self._position = deliveries[-1].offset + 1
        self._position = max(self._position, end)
        return deliveries

    def position(self) -> int:
        return self._position

    def close(self) -> None:
        self._consumer.close()


def consume(
    consumer: Any, limit: int, timeout: float, link: Link, passed_over: Sequence[int] = AWAITED
) -> tuple[list[Delivery], int]:
    """Take what is there, else wait for a first; also return where the partition ends, if told."""
    messages = attempt("poll", lambda: consumer.consume(limit, 0))
    if not messages and (first := attempt("poll", lambda: consumer.poll(timeout))) is not None:
        messages = [first]
        # What came first must go on, whatever ails the rest; the next poll tells.
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
        elif error.code() not in passed_over:
            link.down = translate(error, _named(message))
    if good:
        link.down = None
    elif (reason := link.reason()) is not None:
        link.down = None
        raise reason
    return _deliveries(good), end


def _named(message: Any) -> str:
    """Say what an error is about; one that stops a partition only needs to say which."""
    if message.error().code() == KafkaError._BAD_COMPRESSION:  # noqa: SLF001 - its public name
        return f"{message.topic()}[{message.partition()}]"
    return f"topic {message.topic()}" if message.topic() else "poll"


def _deliveries(messages: Sequence[Any]) -> list[Delivery]:
    """Make deliveries, in one go: what is done here is done for every record."""
    made = []
    place, known = None, ("", -1)
    for message in messages:
        at = topic, number = message.topic(), message.partition()
        if at != known or place is None:
            # They come many at a time from one partition.
            place, known = Partition(topic, number), at
        try:
            headers = message.headers() or ()
            empty = None in map(_CONTENT, headers)
        except (SystemError, UnicodeError):
            # The library finds out that a name is not UTF-8, and leaves it to the next call to say so.
            LOG.warning(_UNREAD, topic, number, message.offset())
            headers, empty = (), False
        if empty:
            headers = [(name, content or b"") for name, content in headers]
        record = _new(Record, (topic, message.value(), message.key(), tuple(headers)))
        made.append(_new(Delivery, (record, place, message.offset(), message.timestamp()[1] / 1000)))
    return made
