"""The result of one run: a row of the table, and the limits of time and memory that it broke."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from faults import timings

STALL_SECONDS = timings.STALL_SECONDS
P99_SECONDS = 0.001
MIN_CALLS_FOR_P99 = 1_000  # of fewer a handful decides
# Defaults of the outbox, and what each record in it takes besides at most: see docs/delivery.md.
OUTBOX_BYTES, OUTBOX_RECORDS, RECORD_OVERHEAD_BYTES = 64 * 2**20, 100_000, 2048


@dataclasses.dataclass
class Row:
    """One row. ``wrong`` counts what was invented, in the wrong pool or falsely acknowledged.

    ``handled``, ``repeated`` and ``repeat_bound`` are sums over both pools; each pool may have half
    of the bound. Times are seconds, memory is in megabytes.
    """

    fault: str
    bus: str
    injections: int
    seconds: float
    offered: int
    acknowledged: int
    failed: int
    handled: int
    lost: int
    repeated: int
    repeat_bound: int
    reordered: int
    wrong: int
    stall: float
    own_stall: float
    p99: float
    noise: float
    first_call: float
    recovery: float
    memory_growth: float
    calls: int
    memory_bound: float
    broken: list[str]


def allowed_growth(options: Mapping[str, Any], offered: int) -> float:
    """Return the megabytes by which a publisher with these options may grow."""
    records = min(offered, options.get("notifications.outbox_records", OUTBOX_RECORDS))
    once = options.get("notifications.outbox_bytes", OUTBOX_BYTES) + records * RECORD_OVERHEAD_BYTES
    return float(once * (2 if "notifications.spool_dir" in options else 1)) / 2**20


def broken_limits(timed: timings.Timings, memory_bound: float) -> list[str]:
    """List the broken limits of time and memory, without what the machine caused."""
    broken = []
    if timed.own_stall > STALL_SECONDS:
        broken.append(f"stall: a call took {timed.own_stall * 1e3:.0f} ms, and the machine was not the cause")
    if timed.p99 - timed.noise > P99_SECONDS and timed.calls >= MIN_CALLS_FOR_P99:
        broken.append(f"p99: {timed.p99 * 1e3:.2f} ms, {timed.noise * 1e3:.2f} ms of it noise")
    if timed.memory_growth > memory_bound:
        broken.append(
            f"memory: a publisher grew by {timed.memory_growth:.0f} MB, allowed are {memory_bound:.0f}"
        )
    return broken
