"""How much is measured: in full, for a first impression, or just to see that it runs."""

from typing import NamedTuple


class Size(NamedTuple):
    """``each`` notifications in a round; the others are of their own sections."""

    rounds: int
    each: int
    calls: int  # publish calls in each state of the broker
    latency_seconds: float
    backlog: int
    gone_seconds: float
    outbox_bytes: int
    most: int  # of topics
    growth_rounds: int


FULL = Size(5, 200_000, 30_000, 10.0, 5_000_000, 600.0, 64 << 20, 1_000, 5)
QUICK = Size(3, 40_000, 6_000, 3.0, 200_000, 15.0, 8 << 20, 100, 2)
TINY = Size(1, 300, 50, 0.1, 300, 0.3, 1 << 20, 2, 1)
