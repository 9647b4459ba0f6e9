"""Tells when records were deleted before a group had read them.

The client libraries go on with the oldest record that is left and say nothing. What shows is
a gap in the offsets; but compaction and the marks of transactions leave gaps too, so the
brokers are asked where the partition begins.

The other way round, a client begins a partition anew that seems to end before its position. So it
seems to a broker that was stopped for a while and does not know yet that others went on without it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.errors import MessagingException

LOG = logging.getLogger(__name__)

DOUBT = 10.0  # seconds for which a partition that begins anew by itself is not believed
CALM = 10.0  # seconds for which a partition with gaps of another kind is asked about no more

Offsets = Callable[[Sequence[Partition]], dict[Partition, int]]
"""Finds where partitions begin, or where a group stood. Blocks."""


class Losses:
    """Follows the positions of one member. Never used by two threads at once."""

    def __init__(
        self,
        group: str,
        committed: Offsets,
        beginnings: Offsets,
        jumped: Callable[[Partition, int], None],
    ) -> None:
        self._group = group
        self._committed = committed
        self._beginnings = beginnings
        self._jumped = jumped
        self._next: dict[Partition, int] = {}
        self._calm: dict[Partition, float] = {}
        self._doubted: dict[Partition, float] = {}

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Take partitions as new: their position may be anywhere."""
        for partition in partitions:
            self._next.pop(partition, None)
            self._doubted.pop(partition, None)

    def look(self, deliveries: Sequence[Delivery]) -> dict[Partition, int]:
        """Log what is missing between the positions and ``deliveries``.

        Return the positions of partitions that went back by themselves: what came of these is
        not to be used.
        """
        following = self._next
        back: dict[Partition, int] = {}
        for _, partition, offset, _ in deliveries:
            # Asked first whether there are any: this is done for every record.
            if back and partition in back:
                continue
            expected = following.get(partition)
            if expected != offset:
                if expected is not None and offset < expected and self._doubts(partition):
                    back[partition] = expected
                    continue
                self._jumped(partition, offset)
                if offset > 0:
                    self._examine(partition, offset)
            following[partition] = offset + 1
        if self._doubted and deliveries:
            self._doubted = {each: since for each, since in self._doubted.items() if each in back}
        return back

    def _doubts(self, partition: Partition) -> bool:
        now = time.monotonic()
        return now - self._doubted.setdefault(partition, now) < DOUBT

    def _examine(self, partition: Partition, offset: int) -> None:
        try:
            position = self._next.get(partition)
            if position is None:
                position = self._committed([partition]).get(partition, -1)
            now = time.monotonic()
            if not 0 <= position < offset or now < self._calm.get(partition, now):
                return
            lost = min(offset, self._beginnings([partition]).get(partition, 0)) - position
        except MessagingException as error:
            # The records are here and must go on; what is missing is missed in the log only.
            LOG.debug("Looking for what is missing of %s: %s", partition, error)
            return
        if lost <= 0:
            self._calm[partition] = now + CALM
            return
        LOG.warning(
            "Group %s lost %d records of %s[%d]: they were deleted before they were read",
            self._group,
            lost,
            *partition,
        )
