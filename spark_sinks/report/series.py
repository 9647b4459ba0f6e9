"""The figures of the page that do not add up: durations, and the metrics of the user's own."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from spark_sinks.report import counts
from spark_sinks.report.counts import Row

DURATION = "notifications.duration"
SHOWN_OTHERWISE = {counts.METRIC, "notifications.error_share", DURATION, "notifications.busiest"}
POINTS = 200
"""Windows of a line at most, if there are wider ones."""

Window = tuple[int, int]
"""From when to when, in seconds of the epoch."""


class Durations(NamedTuple):
    """Percentiles of the seconds that operations took, within one window."""

    window: Window
    percentiles: dict[str, dict[float, float]]


class Series(NamedTuple):
    """A metric of the user's: values by group and by when windows begin."""

    name: str
    unit: str
    width: int
    lines: dict[str, dict[int, float]]


def durations(rows: Sequence[Row]) -> Durations | None:
    """Return the percentiles of the latest of the widest windows, which no others could be merged to."""
    mine = [row for row in rows if row["metric"] == DURATION and "percentile" in dict(row["group"])]
    if not mine:
        return None
    width = max(_window(row)[1] - _window(row)[0] for row in mine)
    latest = max(w for w in map(_window, mine) if w[1] - w[0] == width)
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for row in mine:
        if _window(row) == latest:
            group = dict(row["group"])
            percentile = float(group.pop("percentile"))
            found[spell(group)][percentile] = row["value"]
    return Durations(latest, dict(sorted(found.items())))


def own(rows: Sequence[Row]) -> list[Series]:
    """Return the user's metrics, each by the narrowest windows that are not too many for a line."""
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["metric"] not in SHOWN_OTHERWISE:
            by_name[row["metric"]].append(row)
    return [_series(name, mine) for name, mine in sorted(by_name.items())]


def _series(name: str, mine: Sequence[Row]) -> Series:
    starts: dict[int, set[int]] = defaultdict(set)
    for row in mine:
        start, end = _window(row)
        starts[end - start].add(start)
    fit = [width for width, found in starts.items() if len(found) <= POINTS]
    width = min(fit) if fit else max(starts)
    lines: dict[str, dict[int, float]] = defaultdict(dict)
    for row in mine:
        start, end = _window(row)
        if end - start == width:
            lines[spell(dict(row["group"]))][start] = row["value"]
    return Series(name, mine[0]["unit"], width, dict(sorted(lines.items())))


def spell(group: dict[str, str | None]) -> str:
    """Name a group by its values; those that are numbers say of what."""
    numbered = {"percentile": "p", "le": "≤ ", "rank": "no. "}
    return ", ".join(numbered.get(name, "") + (value or "-") for name, value in group.items()) or "all"


def _window(row: Row) -> Window:
    return int(row["window_start"].timestamp()), int(row["window_end"].timestamp())
