"""What a run counts, and how what is odd about a notification is taken. Imports no pyspark."""

from dataclasses import dataclass
from typing import NamedTuple


class Clock(NamedTuple):
    """How far, in seconds, an event may lie before and after its record for its time to count."""

    behind: int = 30 * 86_400
    ahead: int = 3_600


CLOCK = Clock()


@dataclass(frozen=True)
class Bounds:
    """Times are seconds since the epoch."""

    since: float | None = None
    until: float | None = None
    start: str = "earliest"
    records: int | None = None
    batch_records: int = 2_000_000
    horizon: float = 3_600.0
    clock: Clock = CLOCK
    allow_loss: bool = False
    own: frozenset[str] = frozenset()
    """Topics that the job writes."""
