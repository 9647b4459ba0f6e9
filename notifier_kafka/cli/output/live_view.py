"""The live view of ``top``: what it counts, and its formats."""

import collections
import shutil
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.contract.driver import Delivery
from notifier_kafka.wire import codec

MAX_EVENT_TYPES = 1_000
MAX_NAME_CHARACTERS = 255
OTHERS = "(others)"
COLUMNS = ("at", "event_type", "rate", "total", "errors")
ERRORS = ("ERROR", "CRITICAL")
HOME, LINE_END, SCREEN_END = "\x1b[H", "\x1b[K\n", "\x1b[K\x1b[J"
MAX_NAME_COLUMNS, MIN_NAME_COLUMNS = 60, 10


class Group(NamedTuple):
    name: str
    members: int
    lag: int


class Counts:
    """Notifications by event type: since the last update, in total, and how many of these are errors."""

    def __init__(self) -> None:
        self.now: collections.Counter[str] = collections.Counter()
        self.total: collections.Counter[str] = collections.Counter()
        self.errors: collections.Counter[str] = collections.Counter()
        self.malformed = 0

    def add(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            try:
                notification = codec.decode(delivery.record)
            except (ValueError, RecursionError):
                self.malformed += 1
                continue
            # A publisher of many or long event types must not fill our memory.
            name = _cut_name(notification.event_type or "-")
            if name not in self.total and len(self.total) >= MAX_EVENT_TYPES:
                name = OTHERS
            self.now[name] += 1
            self.total[name] += 1
            self.errors[name] += (notification.priority or "").upper() in ERRORS


class Snapshot(NamedTuple):
    """One update: its time, the seconds since the last one, the counts and the groups."""

    time: float
    seconds: float
    counts: Counts
    groups: list[Group]

    def rate(self, name: str) -> float:
        return self.counts.now[name] / self.seconds

    @property
    def types(self) -> list[str]:
        """The event types, the busiest first."""
        counts = self.counts
        return sorted(counts.total, key=lambda name: (-counts.now[name], -counts.total[name], name))


def _as_object(snapshot: Snapshot, _url: str) -> str:
    counts = snapshot.counts
    types = [
        {
            "event_type": name,
            "rate": round(snapshot.rate(name), 3),
            "total": counts.total[name],
            "errors": counts.errors[name],
        }
        for name in snapshot.types
    ]
    groups = [group._asdict() for group in snapshot.groups]
    members = {"at": text.iso(snapshot.time), "types": types, "malformed": counts.malformed, "groups": groups}
    return text.json_line(members) + "\n"


def _as_lines(snapshot: Snapshot, _url: str) -> str:
    at, counts = text.iso(snapshot.time), snapshot.counts
    lines = [_summary(snapshot)]
    lines += [
        f"{at} type {text.visible(name)} {snapshot.rate(name):.1f}/s total {counts.total[name]} "
        f"errors {counts.errors[name]}"
        for name in snapshot.types
    ]
    lines += [f"{at} group {text.visible(g.name)} members {g.members} lag {g.lag}" for g in snapshot.groups]
    return "".join(f"{line}\n" for line in lines)


def _cells(snapshot: Snapshot) -> Iterator[list[str]]:
    at, counts = text.iso(snapshot.time), snapshot.counts
    for name in snapshot.types:
        numbers = f"{snapshot.rate(name):.1f}", str(counts.total[name]), str(counts.errors[name])
        yield [at, text.visible(name), *numbers]


def _as_csv(snapshot: Snapshot, _url: str) -> str:
    return "".join(f"{notification_lines.csv_line(cells)}\n" for cells in _cells(snapshot))


def _as_values(snapshot: Snapshot, _url: str) -> str:
    return "".join(f"{' '.join(cells)}\n" for cells in _cells(snapshot))


FORMATS = {"table": _as_lines, "json": _as_object, "csv": _as_csv, "value": _as_values}


def _summary(snapshot: Snapshot) -> str:
    at, counts = text.iso(snapshot.time), snapshot.counts
    return (
        f"{at} all {counts.now.total() / snapshot.seconds:.1f}/s total {counts.total.total()} "
        f"errors {counts.errors.total()} malformed {counts.malformed}"
    )


def format_screen(snapshot: Snapshot, url: str) -> str:
    """Format a snapshot for the whole terminal."""
    width, height = shutil.get_terminal_size()
    lines = [
        _summary(snapshot),
        text.visible(url),
        "",
        *_group_lines(snapshot, height // 3, _name_column_width(width)),
    ]
    plain = [line[:width] for line in lines]
    typed = [_type_line(snapshot, name, width) for name in snapshot.types]
    head = f"{'EVENT TYPE':<{_name_column_width(width)}}{'RATE/S':>9}{'TOTAL':>11}{'ERRORS':>8}"
    whole = [*plain, head[:width], *typed][: height - 1]
    return HOME + LINE_END.join(whole) + SCREEN_END


def _name_column_width(width: int) -> int:
    """Return the width of the column of names: what the numbers leave of the terminal's width."""
    return max(MIN_NAME_COLUMNS, min(MAX_NAME_COLUMNS, width - 28))


def _printable_name(name: str, width: int) -> str:
    """Return a printable name of at most ``width`` characters; … marks one that was cut."""
    return _cut_name(text.visible(name), width)


def _cut_name(name: str, width: int = MAX_NAME_CHARACTERS) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _group_lines(snapshot: Snapshot, most: int, names: int) -> list[str]:
    if not snapshot.groups:
        return []
    worst = sorted(snapshot.groups, key=lambda group: -group.lag)[:most]
    lines = [f"{_printable_name(g.name, names - 1):<{names}}{g.members:>9}{g.lag:>11}" for g in worst]
    return [f"{'GROUP':<{names}}{'MEMBERS':>9}{'LAG':>11}", *lines, ""]


def _type_line(snapshot: Snapshot, name: str, width: int) -> str:
    counts = snapshot.counts
    names, errors = _name_column_width(width), counts.errors[name]
    line = f"{_printable_name(name, names - 1):<{names}}{snapshot.rate(name):>9.1f}"
    line += f"{counts.total[name]:>11}{errors:>8}"
    return text.coloured(line[:width], text.RED) if errors else line[:width]
