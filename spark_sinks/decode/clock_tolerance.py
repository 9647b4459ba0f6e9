"""How wrong the clock of a sender may be. Imports no pyspark."""

from typing import NamedTuple


class ClockTolerance(NamedTuple):
    """How many seconds an event may lie before and after its record for the event's time to count."""

    behind: int = 30 * 86_400
    ahead: int = 3_600


DEFAULT_TOLERANCE = ClockTolerance()
