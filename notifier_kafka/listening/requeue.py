"""Notifications that come back, and those set aside.

Both go to topics of the group's own, so that no other group sees them twice. A record
keeps its value, key and headers and gains some that say why it is there. On the topics
that the group listens to, where whoever may publish writes, such headers mean nothing.
"""

import logging
import math
import threading
import time
from collections.abc import Sequence

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

_OURS = frozenset({ATTEMPT, FAILURES, DUE, REASON})
_ORIGIN = frozenset({TOPIC, PARTITION, OFFSET})
MOST_DOUBLINGS = 60  # anybody may have written how many attempts there were
WAIT = 0.2  # seconds between looks at whether the listener was told to stop
GRACE = 2.0  # seconds that one that was gives to what is to be stored


class Requeue:
    """Puts refused and poisonous deliveries where they belong, durably."""

    def __init__(
        self, driver: Driver, group: str, names: Sequence[str], delay: float, longest: float = 0.0
    ) -> None:
        self._homes = {name: topic_names.requeue_topic(group, name) for name in names}
        self._dead_letter_topic = topic_names.dead_letter_topic(group)
        self._delay = delay
        self._longest = max(delay, longest)
        self._driver = driver
        self._publisher: Publisher | None = None

    @property
    def topics(self) -> list[str]:
        """The topics on which refused notifications come back."""
        return list(self._homes.values())

    def again(self, delivery: Delivery, *, failed: bool = False) -> Record:
        """Make the record that brings a refused delivery back; after failures each time twice as late."""
        before = self.failures(delivery)
        due = f"{time.time() + self.delay(before if failed else 0):.6f}".encode()
        attempt = b"%d" % (self.attempts(delivery) + 1)
        # What was requeued before stays on its topic.
        topic = self._homes.get(delivery.record.topic, delivery.record.topic)
        added = ((ATTEMPT, attempt), (FAILURES, b"%d" % (before + failed)), (DUE, due))
        return self._moved(delivery, topic, added)

    def attempts(self, delivery: Delivery) -> int:
        """Count how often the group requeued a delivery."""
        return 0 if self._is_new(delivery) else attempts(delivery.record)

    def failures(self, delivery: Delivery) -> int:
        """Count how often an endpoint of the group raised over a delivery."""
        return 0 if self._is_new(delivery) else int(_number(delivery.record, FAILURES))

    def delay(self, doublings: int) -> float:
        """Say how long one waits before it is tried again."""
        if not doublings:
            return self._delay
        return float(min(self._delay * 2.0 ** min(doublings, MOST_DOUBLINGS), self._longest))

    def aside(self, delivery: Delivery, reason: str, tried: int = 0) -> Record:
        """Make the record that sets a delivery aside for good, after it was tried that often."""
        added = ((ATTEMPT, b"%d" % tried), (REASON, reason.encode()))
        return self._moved(delivery, self._dead_letter_topic, added)

    def is_due(self, delivery: Delivery) -> bool:
        """Say whether a requeued record has waited long enough."""
        wait = _number(delivery.record, DUE) - time.time()
        # No wait is longer than the longest: such a time was written by a clock that was
        # stepped since, and waiting for it could take for ever.
        return wait <= 0 or wait > self._longest

    def store(self, records: Sequence[Record], stopping: threading.Event) -> bool:
        """Write records durably; False when told to stop and they are not within ``GRACE``.

        Waits as long as the log needs, because going on without them would lose them. Of
        a record that the log can never take, what says where it lies is written instead.
        Raises ``DeliveryFailed`` when not even that is possible.
        """
        patience = _Patience(stopping)
        begun: list[tuple[Record, DeliveryWaiter]] = []
        for record in records:
            waiter = self._offer(record, patience)
            if waiter is None:
                return False
            begun.append((record, waiter))
        for record, waiter in begun:
            if not patience.sees(waiter):
                return False
            try:
                waiter.receipts(0)
            except DeliveryFailed as error:
                LOG.error("Of a record for %s only the place is set aside: %s", record.topic, error)
                place = self._offer(self._stub(record, error), patience)
                if place is None or not patience.sees(place):
                    return False
                place.receipts(0)
        return True

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()

    def _is_new(self, delivery: Delivery) -> bool:
        """Say whether a delivery is from a publisher and not from the group itself."""
        return delivery.record.topic in self._homes

    def _moved(self, delivery: Delivery, topic: str, added: Headers) -> Record:
        record, dropped = delivery.record, _OURS
        origin: Headers = ()
        if self._is_new(delivery) or not _header(record, TOPIC):
            # The first move only: later ones would name the requeue topic instead of the origin.
            dropped |= _ORIGIN
            origin = (
                (TOPIC, record.topic.encode()),
                (PARTITION, b"%d" % delivery.partition.number),
                (OFFSET, b"%d" % delivery.offset),
            )
        kept = tuple(header for header in record.headers if header[0] not in dropped)
        return Record(topic, record.value, record.key, kept + origin + added)

    def _offer(self, record: Record, patience: "_Patience") -> DeliveryWaiter | None:
        if self._publisher is None:
            self._publisher = self._driver.publisher(_expect_nothing, Limits(retry=-1))
        waiter = DeliveryWaiter()
        waiter.expect()
        while True:
            try:
                self._publisher.offer(record, waiter.settle)
            except OutboxFull:
                if patience.is_over():
                    return None
                time.sleep(WAIT)
            except DeliveryFailed as refused:
                waiter.settle(refused)
                return waiter
            else:
                return waiter

    def _stub(self, record: Record, error: DeliveryFailed) -> Record:
        kept = [header for header in record.headers if header[0] in (TOPIC, PARTITION, OFFSET, ATTEMPT)]
        reason = f"cannot be stored again: {error}".encode()
        return Record(self._dead_letter_topic, None, None, (*kept, (REASON, reason)))


class _Patience:
    """Waits for the log, but only a moment longer when the listener is to stop.

    What is stored and not known to be would be stored again by the next, with all that was handled beside it.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._end = math.inf

    def is_over(self) -> bool:
        if self._end == math.inf and self._stopping.is_set():
            self._end = time.monotonic() + GRACE
        return time.monotonic() >= self._end

    def sees(self, waiter: DeliveryWaiter) -> bool:
        """Wait until a record is settled; False when patience is over before."""
        while not waiter.wait(WAIT):
            if self.is_over():
                return False
        return True


def attempts(record: Record) -> int:
    """Count how often a record was requeued."""
    return int(_number(record, ATTEMPT))


def reason(record: Record) -> str:
    """Say why a record was set aside; empty if none is given."""
    return (_header(record, REASON) or b"").decode("utf-8", "replace")


def origin(record: Record) -> str:
    """Say where a record was first, as TOPIC PARTITION:OFFSET; empty if nothing says so."""
    topic, number, offset = (
        (_header(record, name) or b"").decode("utf-8", "replace") for name in (TOPIC, PARTITION, OFFSET)
    )
    return f"{topic} {number}:{offset}" if topic else ""


def revived(record: Record, group: str) -> Record | None:
    """Make the record that gives back one that was set aside; None if that is impossible.

    It counts as never tried. Where it came from stays with it.
    """
    home = (_header(record, TOPIC) or b"").decode("utf-8", "replace")
    if not home or record.value is None:
        return None
    kept = tuple(header for header in record.headers if header[0] not in _OURS)
    return Record(topic_names.requeue_topic(group, home), record.value, record.key, kept)


def _expect_nothing(record: Record, error: MessagingException) -> None:
    # Every record is offered with a callback of its own, so the publisher has nothing to say.
    raise AssertionError(f"{record.topic}: {error}")


def _header(record: Record, name: str) -> bytes | None:
    return next((value for key, value in record.headers if key == name), None)


def _number(record: Record, name: str) -> float:
    """Read a number that anybody may have written; 0 if there is none that can be."""
    try:
        number = float(_header(record, name) or 0)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
