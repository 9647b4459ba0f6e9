"""What came of a fault: a row of the table, and what of its times and memory breaks a promise."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from faults import timings

STALL = timings.STALL  # seconds
P99 = 0.001
JUDGED = 1_000  # calls
# What an outbox holds by default, and what docs/delivery.md promises that each that waits takes besides.
BYTES, RECORDS, EACH = 64 * 2**20, 100_000, 2048


@dataclasses.dataclass
class Row:
    """What the table shows. ``wrong`` counts what was invented, mispooled or falsely acknowledged.

    ``handled``, ``duplicated`` and ``bound`` count over both pools; each is held to half of the bound.
    """

    fault: str
    bus: str
    times: int
    seconds: float
    offered: int
    acknowledged: int
    failed: int
    handled: int
    lost: int
    duplicated: int
    bound: int
    reordered: int
    wrong: int
    stall: float
    ours: float
    p99: float
    noise: float
    first: float
    recovery: float
    growth: float
    calls: int
    bounded: float
    broken: list[str]


def promised(options: Mapping[str, Any], offered: int) -> float:
    """Return the megabytes by which a publisher with such options may grow: what waits was offered."""
    records = min(offered, options.get("notifications.outbox_records", RECORDS))
    once = options.get("notifications.outbox_bytes", BYTES) + records * EACH
    return float(once * (2 if "notifications.spool_dir" in options else 1)) / 2**20


def late(timed: timings.Timings, bounded: float) -> list[str]:
    """Say what took too long, or more memory than is promised, and was not the machine's doing."""
    said = []
    if timed.ours > STALL:
        said.append(f"stall: a call took {timed.ours * 1e3:.0f} ms that no processor was late for")
    # Of fewer a handful decides.
    if timed.p99 - timed.noise > P99 and timed.calls >= JUDGED:
        said.append(f"p99: {timed.p99 * 1e3:.2f} ms, {timed.noise * 1e3:.2f} ms of it for any process")
    if timed.growth > bounded:
        said.append(f"memory: a publisher grew by {timed.growth:.0f} MB, allowed are {bounded:.0f}")
    return said
