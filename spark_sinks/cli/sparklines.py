"""Metric rows as lines of bars, for a terminal."""

import datetime
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

COLUMNS = ("metric", "group", "unit", "window", "from", "to", "lowest", "highest", "course")
BARS = "▁▂▃▄▅▆▇█"
MAX_CHARACTERS = 48


def lines_of(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield a line for each metric, group and width of window, of rows as ``metrics show`` has them.

    The bars cover the time of that line evenly, with a gap where nothing was counted.
    """
    keyed = sorted(((row[0], row[3], row[5], _width(row)), row) for row in rows)
    for (metric, group, unit, width), some in itertools.groupby(keyed, lambda pair: pair[0]):
        points = [(_seconds(row[1]), row[4]) for _, row in some]
        values = [value for _, value in points]
        begin, end = (f"{_spelled(at)}Z" for at in (points[0][0], points[-1][0] + width))
        ends = (min(values), max(values))
        yield metric, group, unit, f"{width}s", begin, end, *ends, course(points, width)


def course(points: Sequence[tuple[int, float]], width: int) -> str:
    """Draw figures over time: a bar for the mean of each stretch."""
    first, span = points[0][0], points[-1][0] + width - points[0][0]
    cells = max(1, min(MAX_CHARACTERS, span // width))
    stretches: list[list[float]] = [[] for _ in range(cells)]
    for at, value in points:
        stretches[(at - first) * cells // span].append(value)
    means = [sum(some) / len(some) if some else None for some in stretches]
    low = min(0.0, *(mean for mean in means if mean is not None))
    high = max(0.0, *(mean for mean in means if mean is not None))
    return "".join(" " if mean is None else _bar(mean - low, high - low) for mean in means)


def _bar(size: float, most: float) -> str:
    return BARS[round(size / most * (len(BARS) - 1))] if most else BARS[0]


def _width(row: Sequence[Any]) -> int:
    return _seconds(row[2]) - _seconds(row[1])


def _seconds(spelled: str) -> int:
    return int(datetime.datetime.fromisoformat(spelled).timestamp())


def _spelled(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
