"""Times of publishing calls, memory of publishers and times of recovery, from histories.

Shares no code with the product. ``checker.py`` describes histories; for this module events have
more fields: ``took`` is seconds of a call without those that it was ``queued`` for a processor,
``first`` the same of the first call of a process. More types of events are ``memory``, the use
and the peak of a process, and ``repaired``, which the harness writes. Files ``*.control`` hold
what control processes measured of the machine.
"""

import itertools
import math
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from faults import checker
from faults.checker import Event

STALL_SECONDS = 0.05  # the machine's share is subtracted from longer calls only
Interval = tuple[float, float]


class Timings(NamedTuple):
    """Seconds, and megabytes.

    ``stall`` is the longest call of a publisher that does not wait, ``own_stall`` the same without the
    time in which the machine kept it waiting, ``p99`` the 99th percentile of these calls, ``noise``
    what the machine adds to the 99th percentile of the control's work. ``first_call`` is the longest
    first call of a process; only ``own_stall`` includes it. ``recovery`` is the longest time from a
    repair until every pool handled again each key that was offered after it. ``memory_growth`` is
    that of the process that grew most, ``calls`` the number of calls timed.
    """

    stall: float = 0.0
    own_stall: float = 0.0
    p99: float = 0.0
    noise: float = 0.0
    first_call: float = 0.0
    recovery: float = 0.0
    memory_growth: float = 0.0
    calls: int = 0


def measure(directory: str | pathlib.Path) -> Timings:
    calls: list[Event] = []
    first: list[Event] = []
    repairs: list[int] = []
    offered: list[Event] = []
    pools: dict[str, dict[str, int]] = {}
    growth = [0.0]
    for path in sorted(pathlib.Path(directory).glob("*.history")):
        began = math.inf
        for event in checker.read_events(path):
            calls += [event] if "took" in event else []
            first += [event | {"took": event["first"]}] if "first" in event else []
            match event["type"]:
                case "repaired":
                    repairs.append(event["at"])
                case "offered":
                    offered.append(event)
                case "handled" | "refused":
                    handled = pools.setdefault(event["pool"], {})
                    handled[event["id"]] = min(handled.get(event["id"], event["at"]), event["at"])
                case "started":
                    began = math.inf
                case "memory":
                    began = min(began, event["resident"])
                    growth.append(event["peak"] - began)
    offered.sort(key=lambda event: int(event["at"]))
    repairs.sort()
    spans = itertools.pairwise([*repairs, math.inf])
    waits = [_recovery(*span, offered, handled) for span in spans for handled in pools.values()]
    late, noise = _control(pathlib.Path(directory))
    took = [float(event["took"]) for event in calls]
    return Timings(
        stall=max(took, default=0.0),
        own_stall=max((_own_share(event, late) for event in calls + first), default=0.0),
        p99=_percentile(took),
        noise=noise,
        first_call=max((float(event["took"]) for event in first), default=0.0),
        recovery=max(waits, default=0.0),
        memory_growth=max(growth),
        calls=len(took),
    )


def _control(directory: pathlib.Path) -> tuple[list[Interval], float]:
    """Return when a processor was late, and what the machine adds to the 99th percentile of the work."""
    found = [event for path in directory.glob("*.control") for event in checker.read_events(path)]
    work = sorted(event["work_seconds"] for event in found)
    noise = _percentile(work) - work[len(work) // 2] if work else 0.0
    return [(event["at"] / 1e9 - event["late"], event["at"] / 1e9) for event in found], noise


def _own_share(call: Event, late: Iterable[Interval]) -> float:
    """Return a call's time without the machine's share: its wait in the run queue, or what a control saw."""
    took = float(call["took"])
    if took <= STALL_SECONDS:
        return took
    end = call["at"] / 1e9
    whole = took + float(call.get("queued", 0.0))
    return min(took, whole - _covered(end - whole, end, late))


def _covered(begin: float, end: float, found: Iterable[Interval]) -> float:
    """Return how much of a time these intervals cover together."""
    covered, last = 0.0, begin
    for start, stop in sorted(found):
        if min(stop, end) > max(start, last):
            covered += min(stop, end) - max(start, last)
            last = min(stop, end)
    return covered


def _percentile(found: Sequence[float]) -> float:
    ordered = sorted(found)
    return ordered[len(ordered) * 99 // 100] if ordered else 0.0


def _recovery(begin: float, end: float, offered: list[Event], handled: dict[str, int]) -> float:
    again: dict[str, float] = {}
    for event in offered:
        if begin <= event["at"] < end and event["key"] is not None and event["id"] in handled:
            key, at = event["key"], handled[event["id"]]
            again[key] = min(again.get(key, math.inf), at)
    return max((at - begin for at in again.values()), default=0.0) / 1e9
