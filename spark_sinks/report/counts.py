"""The figures of the page that are sums: notifications by event type, publisher and time.

All are sums over the rows of one metric, so that the figures on the page are consistent. Arrow
adds up, because there may be millions of rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from notifier_kafka.errors import ConfigurationError
from spark_sinks.language.metrics import ERROR_PRIORITIES

METRIC = "notifications.count"
GROUP = ("event_type", "publisher", "priority")
HOUR_SECONDS = 3_600
MAX_BARS = 120
"""Bars of a chart at most."""

_BAR_SECONDS = (60, 300, 900, HOUR_SECONDS, 3 * HOUR_SECONDS, 6 * HOUR_SECONDS, 12 * HOUR_SECONDS, 86_400)


@dataclass
class Share:
    """The notifications of one event type or publisher. ``others`` are its publishers or event types."""

    count: int = 0
    errors: int = 0
    others: set[str] = field(default_factory=set)

    @property
    def error_share(self) -> float:
        return self.errors / self.count if self.count else 0.0


@dataclass
class Counts:
    """Notifications by event type, publisher and time. Times are seconds since the epoch.

    ``width`` is the width of the counted windows, ``bin`` that of a chart's bars. ``hours`` are
    counts by the hour of the day, None when windows are wider than that.
    """

    width: int
    bin: int
    by_window: Counter[int]
    types: dict[str, Share] = field(default_factory=dict)
    publishers: dict[str, Share] = field(default_factory=dict)
    bins: dict[str, Counter[int]] = field(default_factory=dict)
    hours: dict[str, Counter[int]] | None = None

    @property
    def total(self) -> int:
        return self.by_window.total()

    @property
    def errors(self) -> int:
        return sum(share.errors for share in self.types.values())

    @property
    def first(self) -> int:
        return min(self.by_window)

    @property
    def end(self) -> int:
        return max(self.by_window) + self.width

    @property
    def peak(self) -> tuple[int, int]:
        """The window with the most notifications, and their number."""
        return max(self.by_window.items(), key=lambda pair: (pair[1], -pair[0]))

    @property
    def ranked_types(self) -> list[str]:
        """The most frequent first."""
        return ranked(self.types)

    @property
    def ranked_publishers(self) -> list[str]:
        """The busiest first."""
        return ranked(self.publishers)

    @property
    def starts(self) -> range:
        """The starts of a chart's bars."""
        return range(self.first // self.bin * self.bin, self.end, self.bin)

    def volume(self, wanted: Iterable[str]) -> Counter[int]:
        """Add up some event types by the bars of a chart."""
        return sum((self.bins[name] for name in wanted), Counter())


def ranked(shares: Mapping[str, Share]) -> list[str]:
    """Order names by the number of notifications, then by name."""
    return sorted(shares, key=lambda name: (-shares[name].count, name))


def of_rows(found: pa.Table) -> Counts:
    """Add up the rows of the narrowest windows. Raises ``ConfigurationError`` when there are none."""
    mine = found.filter(pc.equal(found["metric"], METRIC))
    if not len(mine):
        raise ConfigurationError(
            f"it has no rows of the metric {METRIC}, which the page needs; declare it as the default "
            "metrics do, or run the job first"
        )
    mine = _spread(mine)
    width = _narrowest(mine)
    mine = mine.filter(pc.equal(mine["width"], width))
    by_window: Counter[int] = Counter()
    for start, count in _sums(mine, ["start"]):
        by_window[start] = count
    made = Counts(width, _bin(min(by_window), max(by_window) + width, width), by_window)
    _share_out(made, mine)
    made.bins = _by_type(mine, _floor(mine["start"], made.bin))
    if width <= HOUR_SECONDS:
        hour = pc.divide(_floor(mine["start"], HOUR_SECONDS), HOUR_SECONDS)
        made.hours = _by_type(mine, pc.subtract(hour, _floor(hour, 24)))
    return made


def windows(found: pa.Table) -> pa.Table:
    """Add ``start`` and ``width``, in seconds."""
    seconds = [
        pc.divide(pc.cast(found[name], pa.int64()), 1_000_000) for name in ("window_start", "window_end")
    ]
    found = found.append_column("start", seconds[0])
    return found.append_column("width", pc.subtract(seconds[1], seconds[0]))


def _spread(mine: pa.Table) -> pa.Table:
    """Turn the members of the group into columns."""
    group = mine["group"].combine_chunks()
    if len(group.keys) != len(GROUP) * len(mine) or set(pc.unique(group.keys).to_pylist()) != set(GROUP):
        raise ConfigurationError(f"its metric {METRIC} is not grouped by {', '.join(GROUP)}")
    made = windows(mine.select(["window_start", "window_end"])).select(["start", "width"])
    for name in GROUP:
        made = made.append_column(name, pc.fill_null(pc.map_lookup(group, name, "first"), "-"))
    wrong = pc.is_in(made["priority"], pa.array(ERROR_PRIORITIES))
    count = pc.cast(mine["value"], pa.int64())
    return made.append_column("count", count).append_column("errors", pc.if_else(wrong, count, 0))


def _narrowest(mine: pa.Table) -> int:
    # Windows that overlap would count everything several times.
    off = pc.not_equal(_floor(mine["start"], mine["width"]), mine["start"])
    sliding = set(pc.unique(mine["width"].filter(off)).to_pylist())
    widths = set(pc.unique(mine["width"]).to_pylist()) - sliding
    if not widths:
        raise ConfigurationError(f"its metric {METRIC} has only sliding windows; add a roll-up")
    return int(min(widths))


def _floor(seconds: pa.ChunkedArray, width: pa.ChunkedArray | int) -> pa.ChunkedArray:
    # There is no event before 1970: a division of whole numbers rounds down.
    return pc.multiply(pc.divide(seconds, width), width)


def _bin(first: int, end: int, width: int) -> int:
    """Choose the width of a chart's bars, so that there are not too many."""
    fit = [each for each in _BAR_SECONDS if each % width == 0 and end - first <= each * MAX_BARS]
    widest = max(width, _BAR_SECONDS[-1])
    return fit[0] if fit else widest * -(-(end - first) // (widest * MAX_BARS))


def _sums(
    mine: pa.Table, keys: Sequence[str], measures: Sequence[str] = ("count",)
) -> Iterable[tuple[Any, ...]]:
    made = mine.group_by(list(keys)).aggregate([(name, "sum") for name in measures])
    columns = [*keys, *(f"{name}_sum" for name in measures)]
    return zip(*(made[name].to_pylist() for name in columns), strict=True)


def _share_out(made: Counts, mine: pa.Table) -> None:
    found = _sums(mine, ("event_type", "publisher"), ("count", "errors"))
    for name, publisher, count, errors in found:
        for shares, own, other in ((made.types, name, publisher), (made.publishers, publisher, name)):
            share = shares.setdefault(own, Share())
            share.count += count
            share.errors += errors
            share.others.add(other)


def _by_type(mine: pa.Table, places: pa.ChunkedArray) -> dict[str, Counter[int]]:
    """Add up by event type and place."""
    found: dict[str, Counter[int]] = {}
    placed = mine.select(["event_type", "count"]).append_column("place", places)
    for name, place, count in _sums(placed, ("event_type", "place")):
        found.setdefault(name, Counter())[place] = count
    return found
