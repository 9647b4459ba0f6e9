"""What came of a fault: a row of the table, and what of its times and memory breaks a promise."""

import dataclasses

from faults import timings

STALL = timings.STALL  # seconds
P99 = 0.001
JUDGED = 1_000  # calls
BOUND = 64.0 + 64.0  # MB: outbox_bytes as it is by default, and a constant for all else that grows


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


def late(timed: timings.Timings) -> list[str]:
    """Say what took too long, or too much memory, and was not the machine's doing."""
    said = []
    if timed.ours > STALL:
        said.append(f"stall: a call took {timed.ours * 1e3:.0f} ms that no processor was late for")
    # Of fewer a handful decides.
    if timed.p99 - timed.noise > P99 and timed.calls >= JUDGED:
        said.append(f"p99: {timed.p99 * 1e3:.2f} ms, {timed.noise * 1e3:.2f} ms of it for any process")
    if timed.growth > BOUND:
        said.append(f"memory: a publisher grew by {timed.growth:.0f} MB, allowed are {BOUND:.0f}")
    return said
