"""How long publishers stalled and how long it took to go on, from journals.

Shares no code with the product. Journals are described in ``checker.py``. To these measurements
add ``took``, seconds of a call, ``first``, those of the first one of a process, and ``mark``, of
the harness: from here on things are to go on again.
"""

import itertools
import math
import pathlib
from typing import NamedTuple

from faults import checker
from faults.checker import Line


class Timings(NamedTuple):
    """Seconds: the longest call of a publisher that does not wait, the 99th percentile of all, the
    longest first call, which is none of these, and the longest time from a mark until each key
    that was offered after it was handled again.
    """

    stall: float = 0.0
    p99: float = 0.0
    first: float = 0.0
    recovery: float = 0.0


def measure(directory: str | pathlib.Path) -> Timings:
    took: list[float] = []
    first: list[float] = []
    marks: list[int] = []
    offered: list[Line] = []
    handled: dict[str, int] = {}
    for path in sorted(pathlib.Path(directory).glob("*.journal")):
        for line in checker.lines(path):
            took += [line["took"]] if "took" in line else []
            first += [line["first"]] if "first" in line else []
            match line["what"]:
                case "mark":
                    marks.append(line["at"])
                case "offered":
                    offered.append(line)
                case "handled" | "refused":
                    handled[line["id"]] = min(handled.get(line["id"], line["at"]), line["at"])
    offered.sort(key=lambda line: int(line["at"]))
    marks.sort()
    waits = [_recovery(begin, end, offered, handled) for begin, end in itertools.pairwise([*marks, math.inf])]
    took.sort()
    p99 = took[len(took) * 99 // 100] if took else 0.0
    return Timings(max(took, default=0.0), p99, max(first, default=0.0), max(waits, default=0.0))


def _recovery(begin: float, end: float, offered: list[Line], handled: dict[str, int]) -> float:
    again: dict[str, float] = {}
    for line in offered:
        if begin <= line["at"] < end and line["key"] is not None and line["id"] in handled:
            key, at = line["key"], handled[line["id"]]
            again[key] = min(again.get(key, math.inf), at)
    return max((at - begin for at in again.values()), default=0.0) / 1e9
