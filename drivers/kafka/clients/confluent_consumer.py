"""confluent-kafka behind the seam: consuming."""

import contextlib
import operator
import time
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from notifier_kafka.driver import Delivery, Partition, Positions, Record
from notifier_kafka.errors import CommitRefused, MessagingException

from .. import properties
from . import client
from .confluent_link import Link, at_positions, attempt, listed, made, translate

LEAVING = 2.0  # seconds at most for the steps before the library's own
LOOK = 0.005
QUIET = 12.0  # seconds; librdkafka tries to connect every ten, and tells when that was in vain
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


class Consumer:
    """A member of a group."""

    def __init__(self, config: dict[str, Any], topics: Sequence[str], place: client.Place | None) -> None:
        self.owned: set[Partition] = set()
        self._place = place
        self._incremental = config.get("group.protocol") == "consumer"
        self._link = Link(config)
        self._held = False
        self._consumer = made(confluent_kafka.Consumer, config, self._link)
        self._consumer.subscribe(list(topics), on_assign=self._gain, on_revoke=self._lose, on_lost=self._lose)

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deliveries, _ = _consume(self._consumer, limit, timeout, self._link)
        return deliveries

    def commit(self, positions: Positions) -> None:
        what = f"commit of {len(positions)} positions"
        if not self._consumer.memberid():
            raise CommitRefused(f"{what}: no longer a member of the group")
        attempt(what, lambda: self._consumer.commit(offsets=listed(positions), asynchronous=False))

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        asked = [TopicPartition(*partition) for partition in partitions]
        timeout = properties.REQUEST_TIMEOUT
        return at_positions(attempt("positions", lambda: self._consumer.committed(asked, timeout)))

    def seek(self, partition: Partition, offset: int) -> None:
        attempt(f"seek in {partition}", lambda: self._consumer.seek(TopicPartition(*partition, offset)))

    def reaches(self) -> bool:
        # Asking the brokers would tell at once, and cost the membership time.
        return time.monotonic() - self._link.told > QUIET

    def hold(self) -> None:
        self._held = True
        self._consumer.pause([TopicPartition(*partition) for partition in self.owned])

    def proceed(self) -> None:
        self._held = False
        self._consumer.resume([TopicPartition(*partition) for partition in self.owned])

    def close(self) -> None:
        """Leave the group, one step after the other.

        Closed before its first join is answered, librdkafka leaves a member behind for which the
        group waits; closed before a rebalance is served, it may wait for ever (its issue 4884).
        """
        self.owned.clear()
        self._place = None
        consumer = self._consumer
        deadline = time.monotonic() + LEAVING
        while not consumer.memberid() and not self._link.down and time.monotonic() < deadline:
            time.sleep(LOOK)
        consumer.unsubscribe()
        gone = False
        while not gone and time.monotonic() < deadline:
            with contextlib.suppress(MessagingException):
                attempt("leave", lambda: consumer.poll(LOOK))
            # With the protocol of KIP-848 the id is a member's own and stays.
            gone = not (consumer.assignment() if self._incremental else consumer.memberid())
        consumer.close()

    def _gain(self, consumer: Any, gained: list[TopicPartition]) -> None:
        partitions = [Partition(at.topic, at.partition) for at in gained]
        begin = self._place(partitions) if self._place else {}
        for at, partition in zip(gained, partitions, strict=True):
            at.offset = begin.get(partition, at.offset)
        (consumer.incremental_assign if self._incremental else consumer.assign)(gained)
        self.owned.update(partitions)
        # Said either way: librdkafka remembers a pause of a partition that went and came back.
        (self._consumer.pause if self._held else self._consumer.resume)(gained)

    def _lose(self, _consumer: Any, lost: list[TopicPartition]) -> None:
        self.owned.difference_update(Partition(at.topic, at.partition) for at in lost)


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
        deliveries, end = _consume(self._consumer, limit, timeout, self._link, NEEDLESS)
        if deliveries:
            self._position = deliveries[-1].offset + 1
        self._position = max(self._position, end)
        return deliveries

    def position(self) -> int:
        return self._position

    def close(self) -> None:
        self._consumer.close()


def _consume(
    consumer: Any, limit: int, timeout: float, link: Link, passed_over: Sequence[int] = AWAITED
) -> tuple[list[Delivery], int]:
    """Take what is there, else wait for a first; also return where the partition ends, if told."""
    messages = attempt("poll", lambda: consumer.consume(limit, 0))
    if not messages:
        first = attempt("poll", lambda: consumer.poll(timeout))
        messages = [first] if first is not None else []
        if first is not None and limit > 1:
            messages += attempt("poll", lambda: consumer.consume(limit - 1, 0))
    end = -1
    good = []
    for message in messages:
        error = message.error()
        if error is None:
            good.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            end = message.offset()
        elif error.code() not in passed_over:
            link.down = translate(error, f"topic {message.topic()}" if message.topic() else "poll")
    if good:
        link.down = None
    elif (reason := link.reason()) is not None:
        link.down = None
        raise reason
    return _deliveries(good), end


def _deliveries(messages: Sequence[Any]) -> list[Delivery]:
    """Make deliveries, in one go: what is done here is done for every record."""
    made = []
    place, known = None, ("", -1)
    for message in messages:
        at = topic, number = message.topic(), message.partition()
        if at != known or place is None:
            # They come many at a time from one partition.
            place, known = Partition(topic, number), at
        headers = message.headers() or ()
        if None in map(_CONTENT, headers):
            headers = [(name, content or b"") for name, content in headers]
        record = _new(Record, (topic, message.value(), message.key(), tuple(headers)))
        made.append(_new(Delivery, (record, place, message.offset(), message.timestamp()[1] / 1000)))
    return made
