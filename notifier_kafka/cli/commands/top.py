"""``notifier-kafka top``: a live view of the rate of each event type and the lag of each group."""

import argparse
import collections
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Command, add_stream_format
from notifier_kafka.cli.follow import POLL_SECONDS, Poller, StopSignal
from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Admin, Delivery
from notifier_kafka.errors import TopicNotFound, TransportUnavailable
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import codec, topic_names

BATCH_RECORDS = 2_000
DEFAULT_INTERVAL_SECONDS = 2.0
MAX_EVENT_TYPES = 1_000
MAX_NAME_CHARACTERS = 255
OTHERS = "(others)"
COLUMNS = ("at", "event_type", "rate", "total", "errors")
ERRORS = ("ERROR", "CRITICAL")
HOME, LINE_END, SCREEN_END = "\x1b[H", "\x1b[K\n", "\x1b[K\x1b[J"
MAX_NAME_COLUMNS, MIN_NAME_COLUMNS = 60, 10


class Top(Command):
    """Show the rate and errors of each event type and the lag of each group, live.

    Runs until interrupted. Counts from now on, and changes no group's position. The table is a
    full screen on a terminal, and plain lines elsewhere. JSON is one object per update. CSV and
    values are one line per event type and update.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Read this topic instead of the configured ones; repeatable.",
        )
        add(
            "--interval",
            type=arguments.seconds,
            metavar="S",
            default=DEFAULT_INTERVAL_SECONDS,
            help="Seconds between two updates. Default: %(default)g.",
        )
        add("--count", type=arguments.positive, metavar="N", help="End after N updates.")
        add_stream_format(parser, "table")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.program.transport() as transport:
            stop = StopSignal()
            _run(transport, parsed_args, stop)
        return stop.exit_code


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


def _run(transport: NotificationTransport, args: argparse.Namespace, stop: StopSignal) -> None:
    names = args.topic or options.notifications(transport.conf).topics
    topics = [topic_names.bus_topic(t, p, transport.driver.virtual_host) for t in names for p in PRIORITIES]
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    is_screen = is_terminal and args.format == "table"
    write = _as_screen if is_screen else FORMATS[args.format]
    subscription = transport.driver.subscribe(topics, None, "latest")
    try:
        poller = Poller(subscription, None)
        if is_screen:
            sys.stdout.write(HOME + SCREEN_END)
        if args.format == "csv":
            sys.stdout.write(f"{notification_lines.csv_line(COLUMNS)}\n")
        for snapshot in _take_snapshots(poller, transport.driver.admin(), args.interval, stop):
            sys.stdout.write(write(snapshot, transport.url.masked()))
            sys.stdout.flush()
            if args.count is not None:
                args.count -= 1
            if args.count == 0:
                return
    finally:
        subscription.close()
        if is_screen:
            sys.stdout.write("\n")


def _take_snapshots(poller: Poller, admin: Admin, interval: float, stop: StopSignal) -> Iterator[Snapshot]:
    counts, last = Counts(), time.monotonic()
    while not stop.received:
        deadline = last + max(interval, POLL_SECONDS)
        while not stop.received and time.monotonic() < deadline:
            counts.add(poller.poll(BATCH_RECORDS))
        seconds, last = time.monotonic() - last, time.monotonic()
        yield Snapshot(time.time(), seconds, counts, _groups(admin))
        counts.now.clear()


def _groups(admin: Admin) -> list[Group]:
    groups = []
    # The poller reports an outage; the screen stays.
    with contextlib.suppress(TransportUnavailable):
        for name in sorted(admin.list_groups()):
            with contextlib.suppress(TopicNotFound):
                group = admin.describe_group(name)
                groups.append(Group(name, len(group.members), sum(group.lag.values())))
    return groups


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


def _as_screen(snapshot: Snapshot, url: str) -> str:
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
