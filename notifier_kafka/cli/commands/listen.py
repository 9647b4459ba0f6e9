"""``notifier-kafka listen`` and ``tail``: print notifications as lines."""

import argparse
import operator
import sys
import time
from collections.abc import Iterable, Sequence

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Command, add_stream_format
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.follow import Poller, StopSignal
from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Delivery, Driver, Positions, Start, Subscription
from notifier_kafka.errors import CommitRefused
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import topic_names

BATCH_RECORDS = 500
TAIL_NOTIFICATIONS = 10  # that ``tail`` prints before it follows
CLOCK_SKEW_SECONDS = 10.0  # by which the clocks of publishers may differ
FROM_HELP = (
    "Where to begin: beginning, end, -N for the last N, or a time such as 2026-11-18T07:50 (UTC "
    "unless it has a time zone). Default: end; with --pool, [listener] start. A pool that has a position "
    "continues there."
)
UNTIL_HELP = (
    "Print what the log has up to this time, one partition after the other, and end. Not with --pool."
)
WHERE_HELP = (
    "Only notifications whose FIELD matches the regular expression RE from its beginning. A dot leads "
    "into an object: payload.order=17$. Repeatable: all must match."
)


class _StreamCommand(Command):
    """The options that listen and tail share."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Read this topic instead of the configured ones; repeatable.",
        )
        add("--priority", action="append", choices=PRIORITIES, help="Only this priority; repeatable.")
        add("--max", type=arguments.positive, metavar="N", help="End after N lines.")
        add(
            "--event-type",
            type=arguments.pattern,
            metavar="RE",
            help="Only event types that match the regular expression RE from their beginning.",
        )
        add("--where", action="append", type=arguments.condition, metavar="FIELD=RE", help=WHERE_HELP)
        add("--timeout", type=arguments.seconds, metavar="S", help="End if nothing arrives for S seconds.")
        add_stream_format(parser, "json")
        return parser


class Listen(_StreamCommand):
    """Print notifications, one per line, as they arrive.

    With --pool the program joins the listeners with this pool name: each notification goes to
    one of them, and the position is committed after the line is printed. Without --pool it
    prints every notification, and changes no group's position. SIGTERM ends it with exit code
    0, after the lines it has received.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--pool", metavar="NAME", help="Share the notifications with the other listeners of this pool.")
        add("--from", dest="start", type=arguments.start, metavar="WHEN", help=FROM_HELP)
        add("--until", type=arguments.moment, metavar="TIME", help=UNTIL_HELP)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        args = parsed_args
        _check_options(args)
        with self.program.transport() as transport:
            stop = StopSignal()
            if args.until is not None:
                _print_range(transport, args, stop)
            elif isinstance(args.start, int):
                _print_last_and_follow(transport, args, -args.start, stop)
            else:
                start = args.start
                if start is None:
                    start = options.listener(transport.conf).start if args.pool else "latest"
                _follow(transport, args, start, _Printer(args, stop))
        return stop.exit_code


class Tail(_StreamCommand):
    """Print the last notifications, then new ones as they arrive.

    --event-type and --where filter the last N, so fewer than N may be printed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-n",
            dest="last",
            type=arguments.positive,
            default=TAIL_NOTIFICATIONS,
            metavar="N",
            help="How many to print first. Default: %(default)s.",
        )
        parser.set_defaults(pool=None)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.program.transport() as transport:
            stop = StopSignal()
            _print_last_and_follow(transport, parsed_args, parsed_args.last, stop)
        return stop.exit_code


class _Printer:
    """Prints the notifications that match, up to --max."""

    def __init__(self, args: argparse.Namespace, stop: StopSignal) -> None:
        self._conditions = list(args.where or ())
        if args.event_type:
            self._conditions.append(("event_type", args.event_type))
        self._format = notification_lines.FORMATS[args.format]
        self._left = args.max
        self._stop = stop
        if header := notification_lines.header(args.format):
            self._write(header)

    @property
    def is_done(self) -> bool:
        return self._stop.received or self._left == 0

    @property
    def limit(self) -> int:
        return BATCH_RECORDS if self._left is None else min(BATCH_RECORDS, self._left)

    def print(self, deliveries: Iterable[Delivery]) -> None:
        """Print all that match, with a note for each malformed one."""
        for delivery in deliveries:
            try:
                fields = notification_lines.decode_fields(delivery)
                is_wanted = notification_lines.matches_all(fields, self._conditions)
                line = self._format(fields) if is_wanted else None
            # Some JSON can be decoded but not encoded: nested too deeply, or a number with too many digits.
            except (ValueError, RecursionError) as error:
                topic, number = delivery.partition
                text.note(
                    f"{topic}, partition {number}, offset {delivery.offset}: not a notification: {error}"
                )
                continue
            if line is not None:
                self._write(line)
                if self._left is not None:
                    self._left -= 1

    @staticmethod
    def _write(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _check_options(args: argparse.Namespace) -> None:
    if args.pool and isinstance(args.start, int):
        raise UsageError("listen: --from -N cannot be used with --pool: a pool continues at its position")
    if args.until is None:
        return
    if args.pool:
        raise UsageError("listen: --until cannot be used with --pool")
    if isinstance(args.start, int) or args.start == "latest":
        raise UsageError("listen: with --until, --from must be beginning or a time")
    if args.until > time.time():
        raise UsageError("listen: --until is in the future; use --timeout or --max to end a listener")


def _bus_topics(transport: NotificationTransport, args: argparse.Namespace) -> list[str]:
    names = args.topic or options.notifications(transport.conf).topics
    virtual_host = transport.driver.virtual_host
    return [topic_names.bus_topic(t, p, virtual_host) for t in names for p in args.priority or PRIORITIES]


def _print_range(transport: NotificationTransport, args: argparse.Namespace, stop: StopSignal) -> None:
    printer = _Printer(args, stop)
    since = args.start if isinstance(args.start, float) else None
    for span in transport.driver.spans(_bus_topics(transport, args), since, args.until):
        for delivery in transport.driver.read(span):
            if printer.is_done:
                return
            printer.print([delivery])


def _print_last_and_follow(
    transport: NotificationTransport, args: argparse.Namespace, count: int, stop: StopSignal
) -> None:
    printer = _Printer(args, stop)
    last, ends = _read_last(transport.driver, _bus_topics(transport, args), count)
    for delivery in last:
        if not printer.is_done:
            printer.print([delivery])
    # Not from "latest": records may arrive before the subscription begins. So it begins at a
    # time before them, with a margin for wrong clocks, and skips the records before ``ends``.
    start: Start = min(last[-1].timestamp, time.time()) - CLOCK_SKEW_SECONDS if last else "earliest"
    _follow(transport, args, start, printer, ends)


def _read_last(driver: Driver, topics: Sequence[str], count: int) -> tuple[list[Delivery], Positions]:
    """Read the last deliveries, ordered by time, and the end of each partition."""
    last: list[Delivery] = []
    spans = driver.spans(topics)
    for span in spans:
        last += driver.read(span._replace(start=max(span.start, span.stop - count)))
        last = sorted(last, key=operator.attrgetter("timestamp"))[-count:]
    return last, {span.partition: span.stop for span in spans}


def _follow(
    transport: NotificationTransport,
    args: argparse.Namespace,
    start: Start,
    printer: _Printer,
    after: Positions | None = None,
) -> None:
    """Print what arrives, from ``start`` on but not before the positions ``after``."""
    if printer.is_done:
        return
    if sys.stdout.isatty() and sys.stderr.isatty():
        # Otherwise the screen would be empty, as if the program hung.
        names = ", ".join(args.topic or options.notifications(transport.conf).topics)
        text.note(f"listening to {names} on {transport.url.masked()}; press Ctrl-C to end")
    seen = after or {}
    subscription = transport.driver.subscribe(_bus_topics(transport, args), args.pool, start)
    try:
        poller = Poller(subscription, args.timeout)
        while not (printer.is_done or poller.timed_out):
            deliveries = poller.poll(printer.limit)
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
        text.note(f"{refused}; another listener of the pool will print these again")
        if kept and refused.partitions:
            subscription.commit(kept)
