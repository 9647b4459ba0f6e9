"""What a run reads, at most. Imports no pyspark."""

from dataclasses import dataclass

from spark_sinks.decode.clock_tolerance import DEFAULT_TOLERANCE, ClockTolerance


@dataclass(frozen=True)
class RunLimits:
    """Which records a run reads and what it accepts. Times are seconds since the epoch."""

    since: float | None = None
    until: float | None = None
    start: str = "earliest"
    records: int | None = None
    batch_records: int = 2_000_000
    deduplicate_seconds: float = 3_600.0
    clock: ClockTolerance = DEFAULT_TOLERANCE
    allow_loss: bool = False
    own_topics: frozenset[str] = frozenset()
    """Topics that the job itself writes: a pattern does not include them."""
