"""The subscriptions of a listener, and what it still owes on them."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Delivery, Partition, Positions, Subscription
from notifier_kafka.errors import CommitRefused, MessagingException

LOG = logging.getLogger(__name__)

OVERTAKEN = 1_000
WAITING = 10_000
WAITING_BYTES = 32 * 1024 * 1024


class Lane:
    """Polls and commits. What was polled is settled, or taken back, before the next poll."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._owed: dict[Partition, int] = {}
        self._back: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        """Return deliveries. Does first what an unavailable log refused to do before."""
        self._pay()
        self._seek_back()
        return list(self._subscription.poll(limit, timeout))

    def take_back(self, deliveries: Sequence[Delivery]) -> None:
        """Have deliveries come again: they were polled and could not be settled."""
        firsts: dict[Partition, int] = {}
        for delivery in deliveries:
            firsts.setdefault(delivery.partition, delivery.offset)
        self.go_back(firsts)

    def go_back(self, positions: Positions) -> None:
        """Go on from ``positions``. While the log is away nothing is polled before that was done."""
        self._back |= positions
        with contextlib.suppress(MessagingException):  # the next poll raises it
            self._seek_back()

    def commit(self, positions: Positions) -> frozenset[Partition]:
        """Commit ``positions`` and what is owed; return what went to another member.

        What an unavailable log does not take stays owed.
        """
        self._owed |= positions
        return self._pay()

    def claim(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Commit deliveries before they are handled; return those that are still ours."""
        lost = self.commit({delivery.partition: delivery.offset + 1 for delivery in deliveries})
        return [delivery for delivery in deliveries if delivery.partition not in lost]

    def close(self) -> None:
        self._subscription.close()

    def _seek_back(self) -> None:
        if self._back:
            self._subscription.seek(self._back)
            self._back = {}

    def _pay(self) -> frozenset[Partition]:
        lost: set[Partition] = set()
        while self._owed:
            try:
                self._subscription.commit(self._owed)
            except CommitRefused as refused:
                LOG.info("Partitions went to another member, which may repeat the last batch: %s", refused)
                gone = {p for p in self._owed if p in refused.partitions} or set(self._owed)
                self._owed = {p: offset for p, offset in self._owed.items() if p not in gone}
                lost |= gone
            else:
                self._owed = {}
        return frozenset(lost)


class WaitingLane(Lane):
    """A lane whose deliveries wait for their time, each without holding up the others.

    They wait in memory, so many and so many bytes at most (and one poll more); those behind are
    not seen until there is room. The position goes up to the first that waits, so
    that none is lost; those settled behind it come again if this process dies first. So that they
    are not many, one that was ``overtaken`` by many is stored once more, and let go of.
    """

    def __init__(self, subscription: Subscription, most: int = WAITING, size: int = WAITING_BYTES) -> None:
        super().__init__(subscription)
        self._most, self._size = most, size
        self._held: list[Delivery] = []
        self._bytes = 0
        self._due: set[tuple[Partition, int]] = set()
        self._reached: dict[Partition, int] = {}

    def poll_due(self, limit: int, is_due: Callable[[Delivery], bool]) -> list[Delivery]:
        """Return ``limit`` of those deliveries at most whose time has come. Polls as many for the wait."""
        room = self._most - len(self._held)
        if room > 0 and self._bytes < self._size:
            self._hold(self.poll(min(limit, room), 0.0))
        due = list(itertools.islice(filter(is_due, self._held), limit))
        self._due = {(delivery.partition, delivery.offset) for delivery in due}
        return due

    def take_back(self, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002 - they are held still
        self._due = set()

    def commit(self, positions: Positions) -> frozenset[Partition]:
        self._keep(d for d in self._held if not self._is_settled(d, positions))
        self._due = set()
        for partition, offset in positions.items():
            self._reached[partition] = max(offset, self._reached.get(partition, 0))
        firsts: dict[Partition, int] = {}
        for delivery in self._held:
            firsts.setdefault(delivery.partition, delivery.offset)
        reached = {p: self._reached[p] for p in positions}
        lost = super().commit({p: min(offset, firsts.get(p, offset)) for p, offset in reached.items()})
        if lost:
            self._keep(delivery for delivery in self._held if delivery.partition not in lost)
            # A commit may also be refused to a member that still has the partition.
            self.go_back({partition: first for partition, first in firsts.items() if partition in lost})
        return lost

    def overtaken(self, *, leaving: bool) -> list[Delivery]:
        """Return those that wait while many behind them were settled; one is many for who is leaving."""
        # Storing them is work too: no more than there is anyway.
        many = 0 if leaving else max(OVERTAKEN, len(self._held))
        return [each for each in self._held if self._reached[each.partition] - each.offset > many]

    def let_go(self, deliveries: Sequence[Delivery]) -> None:
        """Let go of deliveries that were stored once more, and commit what is settled behind them."""
        places = {(each.partition, each.offset) for each in deliveries}
        self._keep(each for each in self._held if (each.partition, each.offset) not in places)
        self._due = set()
        self.commit({each.partition: self._reached[each.partition] for each in deliveries})

    def _keep(self, deliveries: Iterable[Delivery]) -> None:
        self._held = list(deliveries)
        self._bytes = sum(len(each.record.value or b"") for each in self._held)

    def _is_settled(self, delivery: Delivery, positions: Positions) -> bool:
        partition, offset = delivery.partition, delivery.offset
        return (partition, offset) in self._due and offset < positions.get(partition, 0)

    def _hold(self, deliveries: Sequence[Delivery]) -> None:
        firsts: dict[Partition, int] = {}
        for delivery in deliveries:
            firsts.setdefault(delivery.partition, delivery.offset)
        for partition, first in firsts.items():
            # One that was lost and is back begins anew: what was held of it comes again.
            self._reached[partition] = min(first, self._reached.get(partition, first))
            self._held = [d for d in self._held if d.partition != partition or d.offset < first]
        if deliveries:
            self._keep([*self._held, *deliveries])
