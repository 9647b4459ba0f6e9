"""Requeue and dead-letter topics: notifications that come back later, and those that are set aside.

Each group has its own topics for them, so that no other group gets them twice. A record
keeps its value, key and headers, and gets more headers that say why it is there. On the topics
that the group listens to, such headers are ignored: any publisher may have written them.
"""

import logging
import math
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Delivery, Driver, Headers, Limits, Publisher, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.wire import topic_names

LOG = logging.getLogger(__name__)

ATTEMPT = "requeue-attempt"
FAILURES = "requeue-failures"
DUE = "requeue-due"
REASON = "dead-letter-reason"
TOPIC, PARTITION, OFFSET = "origin-topic", "origin-partition", "origin-offset"

_REQUEUE_HEADERS = frozenset({ATTEMPT, FAILURES, DUE, REASON})
_ORIGIN_HEADERS = frozenset({TOPIC, PARTITION, OFFSET})
MAX_DOUBLINGS = 60  # the number of failures is in a header, which any publisher may have written
STOP_CHECK_SECONDS = 0.2
STORE_AFTER_STOP_SECONDS = 2.0


class RetryRules(NamedTuple):
    """A notification that fails ``max_attempts`` times becomes a dead letter.

    Without ``allow_requeue`` a notification that is answered with REQUEUE is acknowledged.
    """

    allow_requeue: bool
    max_attempts: int


class Requeue:
    """Stores refused notifications and poison messages durably: to come back, or as dead letters."""

    def __init__(
        self, driver: Driver, group: str, topics: Sequence[str], delay: float, longest: float = 0.0
    ) -> None:
        self.group = group
        self.dead_letter_topic = topic_names.dead_letter_topic(group)
        self._requeue_topics = {topic: topic_names.requeue_topic(group, topic) for topic in topics}
        self._delay = delay
        self._longest = max(delay, longest)
        self._driver = driver
        self._publisher: Publisher | None = None

    @property
    def topics(self) -> list[str]:
        """The topics on which refused notifications come back."""
        return list(self._requeue_topics.values())

    def again(self, delivery: Delivery, *, failed: bool = False) -> Record:
        """Make the record that brings a refused delivery back. After each failure it waits twice as long."""
        before = self.failures(delivery)
        due = f"{time.time() + self.delay(before if failed else 0):.6f}".encode()
        attempt = b"%d" % (self.attempts(delivery) + 1)
        # A record that was requeued before stays on its requeue topic.
        topic = self._requeue_topics.get(delivery.record.topic, delivery.record.topic)
        added = ((ATTEMPT, attempt), (FAILURES, b"%d" % (before + failed)), (DUE, due))
        return self._copy(delivery, topic, added)

    def attempts(self, delivery: Delivery) -> int:
        """Count how often the group requeued a delivery."""
        return 0 if self._is_new(delivery) else attempts(delivery.record)

    def failures(self, delivery: Delivery) -> int:
        """Count how often an endpoint of the group raised for a delivery."""
        return 0 if self._is_new(delivery) else int(_number(delivery.record, FAILURES))

    def delay(self, doublings: int) -> float:
        """Return the seconds before the next try, after so many doublings."""
        if not doublings:
            return self._delay
        return float(min(self._delay * 2.0 ** min(doublings, MAX_DOUBLINGS), self._longest))

    def dead_letter(self, delivery: Delivery, reason: str, attempts: int = 0) -> Record:
        """Make the dead letter of a delivery that was tried ``attempts`` times."""
        added = ((ATTEMPT, b"%d" % attempts), (REASON, reason.encode()))
        return self._copy(delivery, self.dead_letter_topic, added)

    def is_due(self, delivery: Delivery) -> bool:
        """Say whether a requeued record has waited long enough."""
        wait = _number(delivery.record, DUE) - time.time()
        # A longer wait than the longest means that the clock was set back since: it could take
        # for ever.
        return wait <= 0 or wait > self._longest

    def store(self, records: Sequence[Record], stopping: threading.Event) -> bool:
        """Write records durably; False if that takes longer than ``STORE_AFTER_STOP_SECONDS`` after a stop.

        Waits as long as the log needs: going on without the records would lose them. For a
        record that the log can never take, a dead letter without its value is written, which
        says where the record is. Raises ``DeliveryFailed`` if that is impossible too.
        """
        deadline = _StopDeadline(stopping)
        offered: list[tuple[Record, DeliveryWaiter]] = []
        for record in records:
            waiter = self._offer(record, deadline)
            if waiter is None:
                return False
            offered.append((record, waiter))
        for record, waiter in offered:
            if not deadline.wait_for(waiter):
                return False
            try:
                waiter.receipts(0)
            except DeliveryFailed as error:
                LOG.error(
                    "A record for %s cannot be stored; a dead letter says where it was: %s",
                    record.topic,
                    error,
                )
                stub = self._offer(self._stub(record, error), deadline)
                if stub is None or not deadline.wait_for(stub):
                    return False
                stub.receipts(0)
        return True

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()

    def origin(self, delivery: Delivery) -> tuple[str, int, int]:
        """Return the topic, partition number and offset where a delivery was published."""
        topic = b"" if self._is_new(delivery) else _header(delivery.record, TOPIC)
        if not topic:
            return *delivery.partition, delivery.offset
        number, offset = _number(delivery.record, PARTITION), _number(delivery.record, OFFSET)
        return topic.decode("utf-8", "replace"), int(number), int(offset)

    def _is_new(self, delivery: Delivery) -> bool:
        """Say whether a delivery is from a publisher and not from the group itself."""
        return delivery.record.topic in self._requeue_topics

    def _copy(self, delivery: Delivery, topic: str, added: Headers) -> Record:
        record, dropped = delivery.record, _REQUEUE_HEADERS
        origin: Headers = ()
        if self._is_new(delivery) or not _header(record, TOPIC):
            # Only the first time: later, the delivery is on the requeue topic.
            dropped |= _ORIGIN_HEADERS
            origin = (
                (TOPIC, record.topic.encode()),
                (PARTITION, b"%d" % delivery.partition.number),
                (OFFSET, b"%d" % delivery.offset),
            )
        kept = tuple(header for header in record.headers if header[0] not in dropped)
        return Record(topic, record.value, record.key, kept + origin + added)

    def _offer(self, record: Record, deadline: "_StopDeadline") -> DeliveryWaiter | None:
        if self._publisher is None:
            self._publisher = self._driver.publisher(_expect_nothing, Limits(retry=-1))
        waiter = DeliveryWaiter()
        waiter.expect()
        while True:
            try:
                self._publisher.offer(record, waiter.settle)
            except OutboxFull:
                if deadline.is_over():
                    return None
                time.sleep(STOP_CHECK_SECONDS)
            except DeliveryFailed as refused:
                waiter.settle(refused)
                return waiter
            else:
                return waiter

    def _stub(self, record: Record, error: DeliveryFailed) -> Record:
        kept = [header for header in record.headers if header[0] in (TOPIC, PARTITION, OFFSET, ATTEMPT)]
        reason = f"cannot be stored again: {error}".encode()
        return Record(self.dead_letter_topic, None, None, (*kept, (REASON, reason)))


class _StopDeadline:
    """Waits for the log: without end, or for ``STORE_AFTER_STOP_SECONDS`` once the listener is to stop.

    Not shorter: what is not known to be stored is handled again, with the rest of its batch.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._end = math.inf

    def is_over(self) -> bool:
        if self._end == math.inf and self._stopping.is_set():
            self._end = time.monotonic() + STORE_AFTER_STOP_SECONDS
        return time.monotonic() >= self._end

    def wait_for(self, waiter: DeliveryWaiter) -> bool:
        """Wait until a record is settled; False if the deadline is over before."""
        while not waiter.wait(STOP_CHECK_SECONDS):
            if self.is_over():
                return False
        return True


def attempts(record: Record) -> int:
    """Count how often a record was requeued."""
    return int(_number(record, ATTEMPT))


def reason(record: Record) -> str:
    """Return why a record was set aside; empty if no header says so."""
    return (_header(record, REASON) or b"").decode("utf-8", "replace")


def origin(record: Record) -> str:
    """Return where a record was published, as TOPIC PARTITION:OFFSET; empty if no header says so."""
    topic, number, offset = (
        (_header(record, name) or b"").decode("utf-8", "replace") for name in (TOPIC, PARTITION, OFFSET)
    )
    return f"{topic} {number}:{offset}" if topic else ""


def revived(record: Record, group: str) -> Record | None:
    """Make the record that brings a dead letter back to its group; None if that is impossible.

    It counts as never tried, and keeps its origin.
    """
    topic = (_header(record, TOPIC) or b"").decode("utf-8", "replace")
    if not topic or record.value is None:
        return None
    kept = tuple(header for header in record.headers if header[0] not in _REQUEUE_HEADERS)
    return Record(topic_names.requeue_topic(group, topic), record.value, record.key, kept)


def _expect_nothing(record: Record, error: MessagingException) -> None:
    # Never called: each record is offered with its own callback.
    raise AssertionError(f"{record.topic}: {error}")


def _header(record: Record, name: str) -> bytes | None:
    return next((value for key, value in record.headers if key == name), None)


def _number(record: Record, name: str) -> float:
    """Read a number from a header that any publisher may have written; 0 if it is absent or invalid."""
    try:
        number = float(_header(record, name) or 0)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
