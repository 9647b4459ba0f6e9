"""``notifier-kafka listen`` and ``tail``: notifications as lines."""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Command, add_stream_format
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.follow import Stop, Watch
from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Delivery, Driver, Positions, Start, Subscription
from notifier_kafka.errors import CommitRefused
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import topic_names

BATCH = 500
LAST = 10  # what ``tail`` shows of the past
SKEW = 10.0  # seconds by which the clocks of publishers may differ
FROM_HELP = (
    "beginning, end, -N for the last N, or a time such as 2026-11-18T07:50 (UTC unless it says otherwise). "
    "Without it end; a pool goes on from its position, and begins here when it has none."
)
UNTIL_HELP = "Print what there is up to this time, a partition after the other, and end. Not with --pool."
WHERE_HELP = (
    "Only those whose FIELD begins with what RE matches; dots lead into objects: "
    "payload.order=17$. Repeatable: all must fit."
)


class _Stream(Command):
    """What listening and looking at the end have in common."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--topic", action="append", metavar="T", help="Where, instead of the configured; repeatable.")
        add("--priority", action="append", choices=PRIORITIES, help="Only these; repeatable.")
        add("--max", type=arguments.positive, metavar="N", help="End after N lines.")
        add(
            "--event-type",
            type=arguments.pattern,
            metavar="RE",
            help="Only types that begin with what RE matches.",
        )
        add("--where", action="append", type=arguments.condition, metavar="FIELD=RE", help=WHERE_HELP)
        add("--timeout", type=arguments.seconds, metavar="S", help="End when nothing came for S seconds.")
        add_stream_format(parser, "json")
        return parser


class Listen(_Stream):
    """Print notifications, one a line, as they arrive.

    With --pool the program joins the listeners of that name: each notification is printed
    by one of them, and counts as done once its line was written. Without it the program
    looks on and takes nothing from anyone. SIGTERM ends it with exit code 0, after the
    lines at hand.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--pool", metavar="NAME", help="Share the work with the listeners of this name.")
        add("--from", dest="start", type=arguments.start, metavar="WHEN", help=FROM_HELP)
        add("--until", type=arguments.moment, metavar="TIME", help=UNTIL_HELP)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        args = parsed_args
        _refuse_nonsense(args)
        with self.program.transport() as transport:
            stop = Stop()
            if args.until is not None:
                _print_range(transport, args, stop)
            elif isinstance(args.start, int):
                _print_end(transport, args, -args.start, stop)
            else:
                start = args.start
                if start is None:
                    start = options.listener(transport.conf).start if args.pool else "latest"
                _follow(transport, args, start, _Printer(args, stop))
        return stop.exit_code


class Tail(_Stream):
    """Print the last notifications, and then those that come.

    What the last N are is decided before --event-type and --where.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-n", dest="last", type=arguments.positive, default=LAST, metavar="N", help=f"{LAST} without it."
        )
        parser.set_defaults(pool=None)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.program.transport() as transport:
            stop = Stop()
            _print_end(transport, parsed_args, parsed_args.last, stop)
        return stop.exit_code


class _Printer:
    """Prints what was asked for, until there is enough of it."""

    def __init__(self, args: argparse.Namespace, stop: Stop) -> None:
        self._conditions = list(args.where or ())
        if args.event_type:
            self._conditions.append(("event_type", args.event_type))
        self._format = notification_lines.FORMATS[args.format]
        self._left = args.max
        self._stop = stop
        if header := notification_lines.header(args.format):
            self._write(header)

    @property
    def ended(self) -> bool:
        return self._stop.wished or self._left == 0

    @property
    def limit(self) -> int:
        return BATCH if self._left is None else min(BATCH, self._left)

    def print(self, deliveries: Iterable[Delivery]) -> None:
        """Print all of them, with a note for each that is no notification."""
        for delivery in deliveries:
            try:
                found = notification_lines.members(delivery)
                line = self._format(found) if notification_lines.fits(found, self._conditions) else None
            # What can be read cannot always be written: nested too deeply, a number too long.
            except (ValueError, RecursionError) as error:
                topic, number = delivery.partition
                text.note(f"{topic}, partition {number}, offset {delivery.offset}: no notification: {error}")
                continue
            if line is not None:
                self._write(line)
                if self._left is not None:
                    self._left -= 1

    @staticmethod
    def _write(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _refuse_nonsense(args: argparse.Namespace) -> None:
    if args.pool and isinstance(args.start, int):
        raise UsageError("listen: a pool has a position; --from -N is for looking on without --pool")
    if args.until is None:
        return
    if args.pool:
        raise UsageError("listen: --until reads without a position; leave out --pool")
    if isinstance(args.start, int) or args.start == "latest":
        raise UsageError("listen: with --until, --from is beginning or a time")
    if args.until > time.time():
        raise UsageError("listen: --until is in the future; --timeout and --max end a listener")


def _bus(transport: NotificationTransport, args: argparse.Namespace) -> list[str]:
    names = args.topic or options.notifications(transport.conf).topics
    virtual_host = transport.driver.virtual_host
    return [topic_names.bus_topic(t, p, virtual_host) for t in names for p in args.priority or PRIORITIES]


def _print_range(transport: NotificationTransport, args: argparse.Namespace, stop: Stop) -> None:
    printer = _Printer(args, stop)
    since = args.start if isinstance(args.start, float) else None
    for span in transport.driver.spans(_bus(transport, args), since, args.until):
        for delivery in transport.driver.read(span):
            if printer.ended:
                return
            printer.print([delivery])


def _print_end(transport: NotificationTransport, args: argparse.Namespace, count: int, stop: Stop) -> None:
    printer = _Printer(args, stop)
    found, ends = _last(transport.driver, _bus(transport, args), count)
    for delivery in found:
        if not printer.ended:
            printer.print([delivery])
    # Not from the end, which is elsewhere by the time that a subscription is there. What is
    # before the ends seen here is passed over.
    # A publisher's clock may be ahead, and what comes meanwhile is before that.
    start: Start = min(_moment(max(found, key=_moment)), time.time()) - SKEW if found else "earliest"
    _follow(transport, args, start, printer, ends)


def _last(driver: Driver, bus: Sequence[str], count: int) -> tuple[list[Delivery], Positions]:
    found: list[Delivery] = []
    spans = driver.spans(bus)
    for span in spans:
        found += driver.read(span._replace(start=max(span.start, span.stop - count)))
        found = sorted(found, key=_moment)[-count:]
    return found, {span.partition: span.stop for span in spans}


def _moment(delivery: Delivery) -> float:
    return delivery.timestamp


def _follow(
    transport: NotificationTransport,
    args: argparse.Namespace,
    start: Start,
    printer: _Printer,
    after: Positions | None = None,
) -> None:
    """Print what comes, from ``start`` on but not before the positions ``after``."""
    if printer.ended:
        return
    if sys.stdout.isatty() and sys.stderr.isatty():
        # An empty screen would look as if it hung.
        names = ", ".join(args.topic or options.notifications(transport.conf).topics)
        text.note(f"listening to {names} on {transport.url.masked()}; Ctrl-C ends it")
    seen = after or {}
    subscription = transport.driver.subscribe(_bus(transport, args), args.pool, start)
    try:
        watch = Watch(subscription, args.timeout)
        while not (printer.ended or watch.ended):
            deliveries = watch.poll(printer.limit)
            printer.print(d for d in deliveries if d.offset >= seen.get(d.partition, 0))
            if args.pool and deliveries:
                _commit(subscription, deliveries)
    finally:
        subscription.close()


def _commit(subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
    positions = {delivery.partition: delivery.offset + 1 for delivery in deliveries}
    try:
        subscription.commit(positions)
    except CommitRefused as refused:
        kept = {partition: at for partition, at in positions.items() if partition not in refused.partitions}
        text.note(f"{refused}; another listener of the pool prints these again")
        if kept and refused.partitions:
            subscription.commit(kept)
