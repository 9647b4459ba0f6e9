"""The figures of the page that are sums: how many notifications, of what, from whom and when.

All of them are sums over the rows of one metric, so that whatever the page shows adds up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from notifier_kafka.errors import ConfigurationError
from spark_sinks.metrics import ERROR_PRIORITIES

METRIC = "notifications.count"
GROUP = {"event_type", "publisher", "priority"}
HOUR = 3_600
BINS = 120
"""Bars of a chart at most."""

_WIDTHS = (60, 300, 900, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 86_400)

Row = Mapping[str, Any]


@dataclass
class Share:
    """What one event type or publisher has of the notifications; ``others`` are those of the other kind."""

    count: int = 0
    errors: int = 0
    others: set[str] = field(default_factory=set)

    @property
    def error_share(self) -> float:
        return self.errors / self.count if self.count else 0.0


@dataclass
class Counts:
    """Notifications by event type, publisher and time; times are seconds of the epoch."""

    width: int
    total: int = 0
    errors: int = 0
    types: dict[str, Share] = field(default_factory=dict)
    publishers: dict[str, Share] = field(default_factory=dict)
    by_window: Counter[int] = field(default_factory=Counter)
    by_type: dict[str, Counter[int]] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return min(self.by_window)

    @property
    def end(self) -> int:
        return max(self.by_window) + self.width

    @property
    def peak(self) -> tuple[int, int]:
        """The window with the most notifications, and how many that are."""
        return max(self.by_window.items(), key=lambda pair: (pair[1], -pair[0]))

    @property
    def ranked_types(self) -> list[str]:
        """The most frequent first."""
        return ranked(self.types)

    @property
    def ranked_publishers(self) -> list[str]:
        """The busiest first."""
        return ranked(self.publishers)

    def bins(self) -> int:
        """Say how wide the bars of a chart are, that there be not too many."""
        span = self.end - self.first
        wide = [w for w in _WIDTHS if w % self.width == 0 and span <= w * BINS]
        day = max(self.width, _WIDTHS[-1])
        return max(self.width, wide[0]) if wide else day * -(-span // (day * BINS))

    def volume(self, wanted: Iterable[str], width: int) -> Counter[int]:
        """Add up some event types by windows of a width."""
        found: Counter[int] = Counter()
        for name in wanted:
            for start, count in self.by_type[name].items():
                found[start // width * width] += count
        return found

    def by_hour(self, name: str) -> list[int]:
        """Add up an event type by the hour of the day, in UTC."""
        found = self.volume([name], HOUR)
        return [
            sum(count for start, count in found.items() if start // HOUR % 24 == hour) for hour in range(24)
        ]


def ranked(shares: Mapping[str, Share]) -> list[str]:
    """Order names by how many, those that have the same by name."""
    return sorted(shares, key=lambda name: (-shares[name].count, name))


def of_rows(rows: Sequence[Row]) -> Counts:
    """Add up the rows of the narrowest windows. Raises ``ConfigurationError`` when there are none."""
    mine = [row for row in rows if row["metric"] == METRIC]
    if not mine:
        raise ConfigurationError(
            f"it has no rows of the metric {METRIC}, which the page is made of; declare it as the default "
            "set does, or nothing was counted yet"
        )
    if any(dict(row["group"]).keys() != GROUP for row in mine):
        raise ConfigurationError(f"its metric {METRIC} is not grouped by {', '.join(sorted(GROUP))}")
    width = _narrowest(mine)
    found = Counts(width)
    for row in mine:
        if _width(row) == width:
            _add(found, row)
    return found


def _narrowest(mine: Sequence[Row]) -> int:
    # Windows that overlap would count everything several times.
    sliding = {_width(row) for row in mine if start_of(row) % _width(row)}
    widths = {_width(row) for row in mine} - sliding
    if not widths:
        raise ConfigurationError(f"its metric {METRIC} has sliding windows only; add a roll-up")
    return min(widths)


def _add(found: Counts, row: Row) -> None:
    group = {name: value or "-" for name, value in row["group"]}
    count, start = round(row["value"]), start_of(row)
    name, publisher = group["event_type"], group["publisher"]
    errors = count if group["priority"] in ERROR_PRIORITIES else 0
    found.total += count
    found.errors += errors
    found.by_window[start] += count
    found.by_type.setdefault(name, Counter())[start] += count
    for shares, mine, other in ((found.types, name, publisher), (found.publishers, publisher, name)):
        share = shares.setdefault(mine, Share())
        share.count += count
        share.errors += errors
        share.others.add(other)


def start_of(row: Row) -> int:
    """Return when the window of a row begins."""
    return int(row["window_start"].timestamp())


def _width(row: Row) -> int:
    return int((row["window_end"] - row["window_start"]).total_seconds())
