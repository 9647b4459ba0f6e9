"""How long publishers stalled, what memory they took and how long it took to go on, from journals.

Shares no code with the product. Journals are described in ``checker.py``. To these measurements
add ``took``, seconds of a call without those ``queued`` for a processor, ``first``, those of the
first one of a process, ``memory``, what a process has and had, and ``mark``, of the harness:
from here on things are to go on again. Files ``*.control`` say what the machine did meanwhile.
"""

import itertools
import math
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from faults import checker
from faults.checker import Line

STALL = 0.05  # seconds; what is longer is looked at
Interval = tuple[float, float]


class Timings(NamedTuple):
    """Seconds, and megabytes.

    ``stall`` is the longest call of a publisher that does not wait, ``ours`` the longest without the
    time in which a processor kept the control waiting, ``p99`` the 99th percentile of all, ``noise``
    what the machine adds at the 99th percentile to the control's work, ``first`` the longest first
    call, which of these only ``ours`` counts. ``recovery`` is the longest time from a mark until
    each key that was offered after it was handled again in every pool. ``growth`` is what the
    memory of a process grew by at most, ``calls`` how many were timed.
    """

    stall: float = 0.0
    ours: float = 0.0
    p99: float = 0.0
    noise: float = 0.0
    first: float = 0.0
    recovery: float = 0.0
    growth: float = 0.0
    calls: int = 0


def measure(directory: str | pathlib.Path) -> Timings:
    calls: list[Line] = []
    first: list[Line] = []
    marks: list[int] = []
    offered: list[Line] = []
    pools: dict[str, dict[str, int]] = {}
    growth = [0.0]
    for path in sorted(pathlib.Path(directory).glob("*.journal")):
        began = math.inf
        for line in checker.lines(path):
            calls += [line] if "took" in line else []
            first += [line | {"took": line["first"]}] if "first" in line else []
            match line["what"]:
                case "mark":
                    marks.append(line["at"])
                case "offered":
                    offered.append(line)
                case "handled" | "refused":
                    handled = pools.setdefault(line["pool"], {})
                    handled[line["id"]] = min(handled.get(line["id"], line["at"]), line["at"])
                case "started":
                    began = math.inf
                case "memory":
                    began = min(began, line["resident"])
                    growth.append(line["peak"] - began)
    offered.sort(key=lambda line: int(line["at"]))
    marks.sort()
    spans = itertools.pairwise([*marks, math.inf])
    waits = [_recovery(*span, offered, handled) for span in spans for handled in pools.values()]
    late, noise = _control(pathlib.Path(directory))
    took = [float(line["took"]) for line in calls]
    return Timings(
        stall=max(took, default=0.0),
        ours=max((_ours(line, late) for line in calls + first), default=0.0),
        p99=_percentile(took),
        noise=noise,
        first=max((float(line["took"]) for line in first), default=0.0),
        recovery=max(waits, default=0.0),
        growth=max(growth),
        calls=len(took),
    )


def _control(directory: pathlib.Path) -> tuple[list[Interval], float]:
    """Return when a processor was late, and what the machine adds to a little work."""
    found = [line for path in directory.glob("*.control") for line in checker.lines(path)]
    work = sorted(line["work"] for line in found)
    noise = _percentile(work) - work[len(work) // 2] if work else 0.0
    return [(line["at"] / 1e9 - line["late"], line["at"] / 1e9) for line in found], noise


def _ours(call: Line, late: Iterable[Interval]) -> float:
    """Take from a long call what the machine had of it: the queue of its thread, or what it kept anybody."""
    took = float(call["took"])
    if took <= STALL:
        return took
    end = call["at"] / 1e9
    whole = took + float(call.get("queued", 0.0))
    return min(took, whole - _covered(end - whole, end, late))


def _covered(begin: float, end: float, found: Iterable[Interval]) -> float:
    """Return for how long of a time anything of what was found lasted."""
    covered, last = 0.0, begin
    for start, stop in sorted(found):
        if min(stop, end) > max(start, last):
            covered += min(stop, end) - max(start, last)
            last = min(stop, end)
    return covered


def _percentile(found: Sequence[float]) -> float:
    ordered = sorted(found)
    return ordered[len(ordered) * 99 // 100] if ordered else 0.0


def _recovery(begin: float, end: float, offered: list[Line], handled: dict[str, int]) -> float:
    again: dict[str, float] = {}
    for line in offered:
        if begin <= line["at"] < end and line["key"] is not None and line["id"] in handled:
            key, at = line["key"], handled[line["id"]]
            again[key] = min(again.get(key, math.inf), at)
    return max((at - begin for at in again.values()), default=0.0) / 1e9
