"""How much is measured: in full, for a first impression, or only to test the benchmarks."""

from typing import NamedTuple


class Size(NamedTuple):
    """``each`` is the notifications in a round; others are for one section. measured.json has these names."""

    rounds: int
    each: int
    calls: int  # publish calls in each state of the broker
    latency_seconds: float
    backlog: int
    gone_seconds: float
    outbox_bytes: int
    most: int  # processes, partitions, topics
    growth_rounds: int
    spark: int  # records to aggregate


FULL = Size(5, 200_000, 10_000, 10.0, 5_000_000, 600.0, 64 << 20, 1_000, 5, 2_000_000)
QUICK = Size(2, 20_000, 3_000, 2.0, 100_000, 10.0, 8 << 20, 100, 1, 200_000)
TINY = Size(1, 300, 50, 0.1, 300, 0.3, 1 << 20, 2, 1, 1_000)
