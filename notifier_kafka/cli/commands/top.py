"""``notifier-kafka top``: what passes, by event type, and how far each group lies behind."""

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
from notifier_kafka.cli.follow import WAIT, Stop, Watch
from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Admin, Delivery
from notifier_kafka.errors import TopicNotFound, TransportUnavailable
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import codec, topic_names

BATCH = 2_000
INTERVAL = 2.0
MOST_TYPES = 1_000
LONGEST = 255  # characters of a name
OTHERS = "(others)"
COLUMNS = ("at", "event_type", "rate", "total", "errors")
ERRORS = ("ERROR", "CRITICAL")
HOME, LINE_END, SCREEN_END = "\x1b[H", "\x1b[K\n", "\x1b[K\x1b[J"
WIDEST, NARROWEST = 60, 10


class Top(Command):
    """Show the rate of each event type, its errors, and the lag of each group, until interrupted.

    Looks on from now and takes nothing from anyone. A table is a screen on a terminal and
    plain lines elsewhere; JSON is an object for each look; CSV and values are a line for
    each event type.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--topic", action="append", metavar="T", help="Where, instead of the configured; repeatable.")
        add(
            "--interval",
            type=arguments.seconds,
            metavar="S",
            default=INTERVAL,
            help="Seconds between two looks. Default: %(default)g.",
        )
        add("--count", type=arguments.positive, metavar="N", help="End after N looks.")
        add_stream_format(parser, "table")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.program.transport() as transport:
            stop = Stop()
            _show(transport, parsed_args, stop)
        return stop.exit_code


class Group(NamedTuple):
    name: str
    members: int
    lag: int


class Counts:
    """What passed, by event type: since the last look, in all, and the errors among these."""

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
            # Who makes up types must not fill the memory of who looks on: neither by many nor by long ones.
            name = _shortened(notification.event_type or "-")
            if name not in self.total and len(self.total) >= MOST_TYPES:
                name = OTHERS
            self.now[name] += 1
            self.total[name] += 1
            self.errors[name] += (notification.priority or "").upper() in ERRORS


class Look(NamedTuple):
    """One look: when, how many seconds after the last, and what was there."""

    moment: float
    seconds: float
    counts: Counts
    groups: list[Group]

    def rate(self, name: str) -> float:
        return self.counts.now[name] / self.seconds

    @property
    def types(self) -> list[str]:
        """The busiest first, and those of the past by name."""
        counts = self.counts
        return sorted(counts.total, key=lambda name: (-counts.now[name], -counts.total[name], name))


def _show(transport: NotificationTransport, args: argparse.Namespace, stop: Stop) -> None:
    names = args.topic or options.notifications(transport.conf).topics
    bus = [topic_names.bus_topic(t, p, transport.driver.virtual_host) for t in names for p in PRIORITIES]
    able = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    screen = able and args.format == "table"
    write = _as_screen if screen else FORMATS[args.format]
    subscription = transport.driver.subscribe(bus, None, "latest")
    try:
        watch = Watch(subscription, None)
        if screen:
            sys.stdout.write(HOME + SCREEN_END)
        if args.format == "csv":
            sys.stdout.write(f"{notification_lines.csv_line(COLUMNS)}\n")
        for look in _looks(watch, transport.driver.admin(), args.interval, stop):
            sys.stdout.write(write(look, transport.url.masked()))
            sys.stdout.flush()
            if args.count is not None:
                args.count -= 1
            if args.count == 0:
                return
    finally:
        subscription.close()
        if screen:
            sys.stdout.write("\n")


def _looks(watch: Watch, admin: Admin, interval: float, stop: Stop) -> Iterator[Look]:
    counts, last = Counts(), time.monotonic()
    while not stop.wished:
        deadline = last + max(interval, WAIT)
        while not stop.wished and time.monotonic() < deadline:
            counts.add(watch.poll(BATCH))
        seconds, last = time.monotonic() - last, time.monotonic()
        yield Look(time.time(), seconds, counts, _groups(admin))
        counts.now.clear()


def _groups(admin: Admin) -> list[Group]:
    found = []
    # The watch tells of a log that is away; the screen stays.
    with contextlib.suppress(TransportUnavailable):
        for name in sorted(admin.list_groups()):
            with contextlib.suppress(TopicNotFound):
                group = admin.describe_group(name)
                found.append(Group(name, len(group.members), sum(group.lag.values())))
    return found


def _as_object(look: Look, _url: str) -> str:
    counts = look.counts
    types = [
        {
            "event_type": name,
            "rate": round(look.rate(name), 3),
            "total": counts.total[name],
            "errors": counts.errors[name],
        }
        for name in look.types
    ]
    groups = [group._asdict() for group in look.groups]
    members = {"at": text.iso(look.moment), "types": types, "malformed": counts.malformed, "groups": groups}
    return text.json_line(members) + "\n"


def _as_lines(look: Look, _url: str) -> str:
    at, counts = text.iso(look.moment), look.counts
    lines = [_summary(look)]
    lines += [
        f"{at} type {text.visible(name)} {look.rate(name):.1f}/s total {counts.total[name]} "
        f"errors {counts.errors[name]}"
        for name in look.types
    ]
    lines += [f"{at} group {text.visible(g.name)} members {g.members} lag {g.lag}" for g in look.groups]
    return "".join(f"{line}\n" for line in lines)


def _cells(look: Look) -> Iterator[list[str]]:
    at, counts = text.iso(look.moment), look.counts
    for name in look.types:
        numbers = f"{look.rate(name):.1f}", str(counts.total[name]), str(counts.errors[name])
        yield [at, text.visible(name), *numbers]


def _as_csv(look: Look, _url: str) -> str:
    return "".join(f"{notification_lines.csv_line(cells)}\n" for cells in _cells(look))


def _as_values(look: Look, _url: str) -> str:
    return "".join(f"{' '.join(cells)}\n" for cells in _cells(look))


FORMATS = {"table": _as_lines, "json": _as_object, "csv": _as_csv, "value": _as_values}


def _summary(look: Look) -> str:
    counts = look.counts
    return (
        f"{text.iso(look.moment)} all {counts.now.total() / look.seconds:.1f}/s total {counts.total.total()} "
        f"errors {counts.errors.total()} malformed {counts.malformed}"
    )


def _as_screen(look: Look, url: str) -> str:
    width, height = shutil.get_terminal_size()
    lines = [_summary(look), text.visible(url), "", *_group_lines(look, height // 3, _names(width))]
    plain = [line[:width] for line in lines]
    typed = [_type_line(look, name, width) for name in look.types]
    head = f"{'EVENT TYPE':<{_names(width)}}{'RATE/S':>9}{'TOTAL':>11}{'ERRORS':>8}"
    whole = [*plain, head[:width], *typed][: height - 1]
    return HOME + LINE_END.join(whole) + SCREEN_END


def _names(width: int) -> int:
    """Say how wide the column of names is: what a narrow terminal leaves beside the numbers."""
    return max(NARROWEST, min(WIDEST, width - 28))


def _cut(name: str, width: int) -> str:
    """Spell a name in so many characters, the last of which says when there are more."""
    return _shortened(text.visible(name), width)


def _shortened(name: str, width: int = LONGEST) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _group_lines(look: Look, most: int, names: int) -> list[str]:
    if not look.groups:
        return []
    worst = sorted(look.groups, key=lambda group: -group.lag)[:most]
    lines = [f"{_cut(g.name, names - 1):<{names}}{g.members:>9}{g.lag:>11}" for g in worst]
    return [f"{'GROUP':<{names}}{'MEMBERS':>9}{'LAG':>11}", *lines, ""]


def _type_line(look: Look, name: str, width: int) -> str:
    counts = look.counts
    names, errors = _names(width), counts.errors[name]
    line = f"{_cut(name, names - 1):<{names}}{look.rate(name):>9.1f}"
    line += f"{counts.total[name]:>11}{errors:>8}"
    return text.coloured(line[:width], text.RED) if errors else line[:width]
