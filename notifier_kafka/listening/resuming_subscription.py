"""Going on from positions that the user keeps with his data."""

import logging
from collections.abc import Callable

from notifier_kafka.contract.driver import Delivery, Partition, Subscription
from notifier_kafka.listening.tracked_subscription import Lane

LOG = logging.getLogger(__name__)

PositionOf = Callable[[Partition], int | None]


class ResumingLane(Lane):
    """A lane that asks the user where each partition goes on when it begins or is back.

    What lies before that position is passed over; if the group is beyond it, as after the
    user's data came out of a backup, the lane goes back.
    """

    def __init__(self, subscription: Subscription, position_of: PositionOf) -> None:
        super().__init__(subscription)
        self._position_of = position_of
        self._next: dict[Partition, int] = {}
        self._floors: dict[Partition, int] = {}

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        back: dict[Partition, int] = {}
        kept = []
        for delivery in super().poll(limit, timeout):
            partition = delivery.partition
            if partition in back:
                continue
            expected = self._next.get(partition)
            if delivery.offset != expected:
                wanted = self._position_of(partition)
                # If we were on our way there already, what lies between is gone.
                if wanted is not None and wanted < delivery.offset and wanted != expected:
                    back[partition] = self._next[partition] = self._floors[partition] = wanted
                    continue
                self._floors[partition] = wanted or 0
            self._next[partition] = delivery.offset + 1
            if delivery.offset >= self._floors[partition]:
                kept.append(delivery)
        if back:
            LOG.info("Going back to the positions that were kept: %s", back)
            self.go_back(back)
        return kept
