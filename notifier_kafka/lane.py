"""One subscription of a listener, and what it still owes."""

import logging
from collections.abc import Callable, Sequence

from notifier_kafka.driver import Delivery, Partition, Positions, Subscription
from notifier_kafka.errors import CommitRefused

LOG = logging.getLogger(__name__)


class Lane:
    """Polls and commits. What was polled is settled, or taken back, before the next poll."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._held: list[Delivery] = []
        self._owed: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        """Return deliveries. Commits first what an unavailable log refused to note before."""
        self.commit({})
        return list(self._subscription.poll(limit, timeout))

    def poll_due(self, limit: int, is_due: Callable[[Delivery], bool]) -> list[Delivery]:
        """Return those deliveries whose time has come; at most one poll's are held."""
        if not self._held:
            self._held = self.poll(limit, 0.0)
        ready = 0
        while ready < len(self._held) and is_due(self._held[ready]):
            ready += 1
        due, self._held = self._held[:ready], self._held[ready:]
        return due

    def take_back(self, deliveries: Sequence[Delivery]) -> None:
        """Have deliveries come again: they were polled and could not be settled."""
        firsts: dict[Partition, int] = {}
        for delivery in [*deliveries, *self._held]:
            firsts.setdefault(delivery.partition, delivery.offset)
        self._held = []
        self._subscription.seek(firsts)

    def commit(self, positions: Positions) -> None:
        """Commit ``positions`` and what is owed. What cannot be committed stays owed."""
        self._owed |= positions
        while self._owed:
            try:
                self._subscription.commit(self._owed)
            except CommitRefused as refused:
                LOG.info("Partitions went to another member, which may repeat the last batch: %s", refused)
                gone = refused.partitions & self._owed.keys() or self._owed.keys()
                self._owed = {p: offset for p, offset in self._owed.items() if p not in gone}
            else:
                self._owed = {}

    def close(self) -> None:
        self._subscription.close()
