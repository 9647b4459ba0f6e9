"""Detects records that were deleted before a group had read them.

The client libraries go on with the oldest record that is left and say nothing. The offsets then have a
gap; but compaction and the markers of transactions leave gaps too, so the brokers are asked where the
partition starts.

It also detects the opposite: a client rewinds to the start of a partition that seems to end before its
position. A broker that was stopped for a while reports such an end until it has caught up with the others.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.errors import MessagingException

LOG = logging.getLogger(__name__)

REWIND_DOUBT_SECONDS = 10.0  # a rewind that persists for longer is taken for real
HARMLESS_GAP_SECONDS = 10.0  # after a gap without a loss the brokers are not asked for so long

Offsets = Callable[[Sequence[Partition]], dict[Partition, int]]
"""Finds where partitions start, or the positions of a group. Blocks."""


class GapDetector:
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
        self._forget_position_ahead = jumped
        self._next: dict[Partition, int] = {}
        self._quiet_until: dict[Partition, float] = {}
        self._doubted: dict[Partition, float] = {}

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Forget the positions of partitions: they may continue anywhere."""
        for partition in partitions:
            self._next.pop(partition, None)
            self._doubted.pop(partition, None)

    def check(self, deliveries: Sequence[Delivery]) -> dict[Partition, int]:
        """Log what is missing between the positions and ``deliveries``.

        Return the positions of partitions that were rewound by the client: their deliveries must not be used.
        """
        following = self._next
        back: dict[Partition, int] = {}
        for _, partition, offset, _ in deliveries:
            # ``back`` first, because this is done for every record.
            if back and partition in back:
                continue
            expected = following.get(partition)
            if expected != offset:
                if expected is not None and offset < expected and self._is_doubtful(partition):
                    back[partition] = expected
                    continue
                self._forget_position_ahead(partition, offset)
                if offset > 0:
                    self._examine(partition, offset)
            following[partition] = offset + 1
        if self._doubted and deliveries:
            self._doubted = {each: since for each, since in self._doubted.items() if each in back}
        return back

    def _is_doubtful(self, partition: Partition) -> bool:
        now = time.monotonic()
        return now - self._doubted.setdefault(partition, now) < REWIND_DOUBT_SECONDS

    def _examine(self, partition: Partition, offset: int) -> None:
        try:
            position = self._next.get(partition)
            if position is None:
                position = self._committed([partition]).get(partition, -1)
            now = time.monotonic()
            if not 0 <= position < offset or now < self._quiet_until.get(partition, now):
                return
            lost = min(offset, self._beginnings([partition]).get(partition, 0)) - position
        except MessagingException as error:
            # The records that came must go on; a loss is then not logged.
            LOG.debug("Looking for lost records of %s: %s", partition, error)
            return
        if lost <= 0:
            self._quiet_until[partition] = now + HARMLESS_GAP_SECONDS
            return
        LOG.warning(
            "Group %s lost %d records of %s[%d]: they were deleted before they were read",
            self._group,
            lost,
            *partition,
        )
