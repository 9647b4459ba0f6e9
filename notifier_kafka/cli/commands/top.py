"""``notifier-kafka top``: a live view of the rate of each event type and the lag of each group."""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Command, add_stream_format
from notifier_kafka.cli.follow import POLL_SECONDS, Poller, StopSignal
from notifier_kafka.cli.output import live_view, notification_lines
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Admin
from notifier_kafka.errors import TopicNotFound, TransportUnavailable
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import topic_names

BATCH_RECORDS = 2_000
DEFAULT_INTERVAL_SECONDS = 2.0


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
            _print_snapshots(transport, parsed_args, stop)
        return stop.exit_code


def _print_snapshots(transport: NotificationTransport, args: argparse.Namespace, stop: StopSignal) -> None:
    names = args.topic or options.notifications(transport.conf).topics
    topics = [topic_names.bus_topic(t, p, transport.driver.virtual_host) for t in names for p in PRIORITIES]
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    is_screen = is_terminal and args.format == "table"
    write = live_view.format_screen if is_screen else live_view.FORMATS[args.format]
    subscription = transport.driver.subscribe(topics, None, "latest")
    try:
        poller = Poller(subscription, None)
        if is_screen:
            sys.stdout.write(live_view.HOME + live_view.SCREEN_END)
        if args.format == "csv":
            sys.stdout.write(f"{notification_lines.csv_line(live_view.COLUMNS)}\n")
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


def _take_snapshots(
    poller: Poller, admin: Admin, interval: float, stop: StopSignal
) -> Iterator[live_view.Snapshot]:
    counts, last = live_view.Counts(), time.monotonic()
    while not stop.received:
        deadline = last + max(interval, POLL_SECONDS)
        while not stop.received and time.monotonic() < deadline:
            counts.add(poller.poll(BATCH_RECORDS))
        seconds, last = time.monotonic() - last, time.monotonic()
        yield live_view.Snapshot(time.time(), seconds, counts, _groups(admin))
        counts.now.clear()


def _groups(admin: Admin) -> list[live_view.Group]:
    groups = []
    # The poller reports an outage; the screen stays.
    with contextlib.suppress(TransportUnavailable):
        for name in sorted(admin.list_groups()):
            with contextlib.suppress(TopicNotFound):
                group = admin.describe_group(name)
                groups.append(live_view.Group(name, len(group.members), sum(group.lag.values())))
    return groups
