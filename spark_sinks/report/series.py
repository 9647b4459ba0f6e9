"""The figures of the page that cannot be added up: durations, and the user's own metrics."""

from collections import defaultdict
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.report import counts

DURATION = "notifications.duration"
SHOWN_OTHERWISE = {counts.METRIC, "notifications.error_share", DURATION, "notifications.busiest"}
MAX_POINTS = 200
"""The most points of a line, if the metric has wider windows."""

Window = tuple[int, int]
"""Start and end, in seconds since the epoch."""


class Durations(NamedTuple):
    """Percentiles of the durations of operations in one window."""

    window: Window
    percentiles: dict[str, dict[float, float]]


class Series(NamedTuple):
    """A metric of the user's: values by group and window start."""

    name: str
    unit: str
    width: int
    lines: dict[str, dict[int, float]]


def durations(found: pa.Table) -> Durations | None:
    """Return the percentiles of the latest of the widest windows: percentiles cannot be merged."""
    mine = counts.windows(found.filter(pc.equal(found["metric"], DURATION)))
    for name in ("width", "start"):
        mine = mine.filter(pc.equal(mine[name], pc.max(mine[name])))
    percentiles: dict[str, dict[float, float]] = defaultdict(dict)
    for row in mine.to_pylist():
        group = dict(row["group"])
        # A metric of that name may be of another kind.
        if "percentile" in group:
            percentile = float(group.pop("percentile"))
            percentiles[spell(group)][percentile] = row["value"]
    if not percentiles:
        return None
    start, width = mine["start"][0].as_py(), mine["width"][0].as_py()
    return Durations((start, start + width), dict(sorted(percentiles.items())))


def own(found: pa.Table) -> list[Series]:
    """Return the user's metrics, each with its narrowest windows that are not too many for a line."""
    others = pc.invert(pc.is_in(found["metric"], pa.array(sorted(SHOWN_OTHERWISE))))
    found = counts.windows(found.filter(others))
    names = sorted(pc.unique(found["metric"]).to_pylist())
    return [_series(name, found.filter(pc.equal(found["metric"], name))) for name in names]


def _series(name: str, mine: pa.Table) -> Series:
    sizes = mine.group_by("width").aggregate([("start", "count_distinct")])
    windows = dict(zip(sizes["width"].to_pylist(), sizes["start_count_distinct"].to_pylist(), strict=True))
    fit = [width for width, number in windows.items() if number <= MAX_POINTS]
    width = min(fit) if fit else max(windows)
    lines: dict[str, dict[int, float]] = defaultdict(dict)
    for row in mine.filter(pc.equal(mine["width"], width)).to_pylist():
        lines[spell(dict(row["group"]))][row["start"]] = row["value"]
    return Series(name, mine["unit"][0].as_py(), width, dict(sorted(lines.items())))


def spell(group: dict[str, str | None]) -> str:
    """Name a group by its values. Numbers have a prefix that says what they are."""
    numbered = {"percentile": "p", "le": "≤ ", "rank": "no. "}
    return ", ".join(numbered.get(name, "") + (value or "-") for name, value in group.items()) or "all"
