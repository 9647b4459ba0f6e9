"""A listener's subscriptions. They remember the commits and seeks that an unavailable log did not take."""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Delivery, Partition, Positions, Subscription
from notifier_kafka.errors import CommitRefused, MessagingException

LOG = logging.getLogger(__name__)

OVERTAKEN_RECORDS = 1_000
MAX_WAITING_RECORDS = 10_000
MAX_WAITING_BYTES = 32 * 1024 * 1024

StoredPosition = Callable[[Partition], int | None]


class TrackedSubscription:
    """Polls and commits. The caller settles or gives back what it polled before it polls again."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._uncommitted: dict[Partition, int] = {}
        self._pending_seek: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        """Return deliveries, after the commits and seeks that are still to be done."""
        self._commit_pending()
        self._seek_pending()
        return list(self._subscription.poll(limit, timeout))

    def redeliver(self, deliveries: Sequence[Delivery]) -> None:
        """Deliver again what was polled and could not be settled."""
        self.seek(_first_offsets(deliveries))

    def seek(self, positions: Positions) -> None:
        """Go on from ``positions``. If the log is unavailable, the next poll seeks first."""
        self._pending_seek |= positions
        with contextlib.suppress(MessagingException):  # the next poll raises it
            self._seek_pending()

    def commit(self, positions: Positions) -> frozenset[Partition]:
        """Commit ``positions`` and all that is still uncommitted; return the partitions that were refused.

        If the log is unavailable, the next poll commits first.
        """
        self._uncommitted |= positions
        return self._commit_pending()

    def claim(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Commit deliveries before they are handled; return those whose commit was not refused."""
        lost = self.commit({delivery.partition: delivery.offset + 1 for delivery in deliveries})
        return [delivery for delivery in deliveries if delivery.partition not in lost]

    def close(self) -> None:
        self._subscription.close()

    def _seek_pending(self) -> None:
        if self._pending_seek:
            self._subscription.seek(self._pending_seek)
            self._pending_seek = {}

    def _commit_pending(self) -> frozenset[Partition]:
        lost: set[Partition] = set()
        while self._uncommitted:
            try:
                self._subscription.commit(self._uncommitted)
            except CommitRefused as refused:
                LOG.info("Partitions went to another member, which may repeat the last batch: %s", refused)
                gone = {p for p in self._uncommitted if p in refused.partitions} or set(self._uncommitted)
                self._uncommitted = {p: offset for p, offset in self._uncommitted.items() if p not in gone}
                lost |= gone
            else:
                self._uncommitted = {}
        return frozenset(lost)


class DelayedSubscription(TrackedSubscription):
    """Returns each delivery when it is due. A delivery that waits does not delay the others.

    They wait in memory, bounded in records and bytes (exceeded by one poll at most); records
    behind them are polled when there is room. The committed position stays at the first that
    waits, so none is lost; deliveries settled behind it come again if this process dies. To keep
    those few, a delivery that many others have overtaken is stored once more and released.
    """

    def __init__(
        self,
        subscription: Subscription,
        max_records: int = MAX_WAITING_RECORDS,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        super().__init__(subscription)
        self._max_records, self._max_bytes = max_records, max_bytes
        self._waiting: list[Delivery] = []
        self._waiting_bytes = 0
        self._handed_out: set[tuple[Partition, int]] = set()
        self._settled_to: dict[Partition, int] = {}

    def poll_due(self, limit: int, is_due: Callable[[Delivery], bool]) -> list[Delivery]:
        """Return up to ``limit`` deliveries that are due. If there is room, polls up to ``limit`` first."""
        room = self._max_records - len(self._waiting)
        if room > 0 and self._waiting_bytes < self._max_bytes:
            self._add_waiting(self.poll(min(limit, room), 0.0))
        due = list(itertools.islice(filter(is_due, self._waiting), limit))
        self._handed_out = {(delivery.partition, delivery.offset) for delivery in due}
        return due

    def redeliver(self, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002 - they are still in memory
        self._handed_out = set()

    def commit(self, positions: Positions) -> frozenset[Partition]:
        self._set_waiting(d for d in self._waiting if not self._is_settled(d, positions))
        self._handed_out = set()
        for partition, offset in positions.items():
            self._settled_to[partition] = max(offset, self._settled_to.get(partition, 0))
        firsts = _first_offsets(self._waiting)
        settled = {p: self._settled_to[p] for p in positions}
        lost = super().commit({p: min(offset, firsts.get(p, offset)) for p, offset in settled.items()})
        if lost:
            self._set_waiting(delivery for delivery in self._waiting if delivery.partition not in lost)
            # A commit may also be refused to a member that still has the partition.
            self.seek({partition: first for partition, first in firsts.items() if partition in lost})
        return lost

    def overtaken(self, *, leaving: bool) -> list[Delivery]:
        """Return deliveries that wait while many behind them were settled; when leaving, one is many."""
        # Storing them once more costs time: never more of them than wait anyway.
        many = 0 if leaving else max(OVERTAKEN_RECORDS, len(self._waiting))
        return [each for each in self._waiting if self._settled_to[each.partition] - each.offset > many]

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Forget deliveries that were stored once more, and commit what is settled behind them."""
        released = {(each.partition, each.offset) for each in deliveries}
        self._set_waiting(each for each in self._waiting if (each.partition, each.offset) not in released)
        self._handed_out = set()
        self.commit({each.partition: self._settled_to[each.partition] for each in deliveries})

    def _set_waiting(self, deliveries: Iterable[Delivery]) -> None:
        self._waiting = list(deliveries)
        self._waiting_bytes = sum(len(each.record.value or b"") for each in self._waiting)

    def _is_settled(self, delivery: Delivery, positions: Positions) -> bool:
        partition, offset = delivery.partition, delivery.offset
        return (partition, offset) in self._handed_out and offset < positions.get(partition, 0)

    def _add_waiting(self, deliveries: Sequence[Delivery]) -> None:
        for partition, first in _first_offsets(deliveries).items():
            # After a rebalance took a partition away and back, its deliveries come again.
            self._settled_to[partition] = min(first, self._settled_to.get(partition, first))
            self._waiting = [d for d in self._waiting if d.partition != partition or d.offset < first]
        if deliveries:
            self._set_waiting([*self._waiting, *deliveries])


class ResumingSubscription(TrackedSubscription):
    """Goes on from the positions that the user stores with their data.

    Asks for the position when a partition is assigned, for the first time or again. Skips what
    lies before it. If the group is ahead of it, because the user's data was restored from a
    backup, seeks back.
    """

    def __init__(self, subscription: Subscription, stored_position: StoredPosition) -> None:
        super().__init__(subscription)
        self._stored_position = stored_position
        self._next_offset: dict[Partition, int] = {}
        self._first_wanted: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        seeks: dict[Partition, int] = {}
        wanted = []
        for delivery in super().poll(limit, timeout):
            partition = delivery.partition
            if partition in seeks:
                continue
            expected = self._next_offset.get(partition)
            if delivery.offset != expected:
                stored = self._stored_position(partition)
                # If we sought to it already, the records between it and this one are gone.
                if stored is not None and stored < delivery.offset and stored != expected:
                    seeks[partition] = stored
                    self._next_offset[partition] = self._first_wanted[partition] = stored
                    continue
                self._first_wanted[partition] = stored or 0
            self._next_offset[partition] = delivery.offset + 1
            if delivery.offset >= self._first_wanted[partition]:
                wanted.append(delivery)
        if seeks:
            LOG.info("Seeking back to the positions that the handler stored: %s", seeks)
            self.seek(seeks)
        return wanted


def _first_offsets(deliveries: Iterable[Delivery]) -> dict[Partition, int]:
    firsts: dict[Partition, int] = {}
    for delivery in deliveries:
        firsts.setdefault(delivery.partition, delivery.offset)
    return firsts
