"""``notifier-kafka listen``: notifications as JSON lines."""

import argparse
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from notifier_kafka import codec, options, topics
from notifier_kafka.cli import arguments, text
from notifier_kafka.cli.command import Command
from notifier_kafka.cli.exits import Exit
from notifier_kafka.driver import Delivery, Subscription
from notifier_kafka.errors import CommitRefused, TransportUnavailable
from notifier_kafka.notification import PRIORITIES, Notification
from notifier_kafka.transport import NotificationTransport

BATCH = 500
WAIT = 0.5  # seconds that a signal or --timeout may have to wait for a quiet log
FROM_HELP = (
    "beginning, end, or a time such as 2026-11-18T07:50 (UTC unless it says otherwise). "
    "Without it end; a pool goes on from its position, and begins here when it has none."
)


class Listen(Command):
    """Print notifications as JSON lines, as they arrive.

    With --pool the program joins the listeners of that name: each notification is printed
    by one of them, and counts as done once its line was written. Without it the program
    looks on and takes nothing from anyone. SIGTERM ends it with exit code 0, after the
    lines at hand.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("--topic", action="append", metavar="T", help="Where, instead of the configured; repeatable.")
        add("--priority", action="append", choices=PRIORITIES, help="Only these; repeatable.")
        add("--pool", metavar="NAME", help="Share the work with the listeners of this name.")
        add("--from", dest="start", type=arguments.start, metavar="WHEN", help=FROM_HELP)
        add("--max", type=arguments.positive, metavar="N", help="End after N lines.")
        add(
            "--event-type",
            type=arguments.pattern,
            metavar="RE",
            help="Only types that begin with what RE matches.",
        )
        add("--timeout", type=arguments.seconds, metavar="S", help="End when nothing came for S seconds.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        with self.program.transport() as transport:
            stop = _Stop()
            subscription = _subscribe(transport, parsed_args)
            try:
                _print(subscription, parsed_args, stop)
            finally:
                subscription.close()
        return stop.exit_code


class _Stop:
    """Turns the first SIGTERM or Ctrl-C into a wish; the second is not waited for."""

    def __init__(self) -> None:
        self.wished = False
        self.exit_code = Exit.OK
        for number in (signal.SIGTERM, signal.SIGINT):
            # A shell starts a job in the background with Ctrl-C ignored; that is its choice.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._wish)

    def _wish(self, number: int, _frame: FrameType | None) -> None:
        self.wished = True
        self.exit_code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.OK
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _subscribe(transport: NotificationTransport, args: argparse.Namespace) -> Subscription:
    names = args.topic or options.notifications(transport.conf).topics
    virtual_host = transport.driver.virtual_host
    bus = [topics.bus_topic(t, p, virtual_host) for t in names for p in args.priority or PRIORITIES]
    start = args.start
    if start is None:
        start = options.listener(transport.conf).start if args.pool else "latest"
    return transport.driver.subscribe(bus, args.pool, start)


class _Tail:
    """Polls, and sits out an outage that comes after a good start."""

    def __init__(self, subscription: Subscription, timeout: float | None) -> None:
        self._subscription = subscription
        self._timeout = timeout
        self._last = time.monotonic()
        self._reached = False
        self._outage: TransportUnavailable | None = None
        self.ended = False

    def poll(self, limit: int) -> Sequence[Delivery]:
        """Return what came, perhaps nothing; ``ended`` is set once --timeout has passed."""
        try:
            deliveries = self._subscription.poll(limit, self._patience())
        except TransportUnavailable as error:
            self._sit_out(error)
            deliveries = ()
        else:
            self._reached, self._outage = True, None
        if deliveries:
            self._last = time.monotonic()
        elif self._timeout is not None and self._patience() <= 0:
            self.ended = True
            if self._outage is not None:
                raise self._outage
        return deliveries

    def _patience(self) -> float:
        if self._timeout is None:
            return WAIT
        return min(WAIT, max(0.0, self._last + self._timeout - time.monotonic()))

    def _sit_out(self, error: TransportUnavailable) -> None:
        if not self._reached:
            raise error
        if self._outage is None:
            text.note(f"{error}; waiting for it to come back")
        self._outage = error
        time.sleep(WAIT)


def _print(subscription: Subscription, args: argparse.Namespace, stop: _Stop) -> None:
    tail = _Tail(subscription, args.timeout)
    left = args.max
    while not (stop.wished or tail.ended or left == 0):
        deliveries = tail.poll(BATCH if left is None else min(BATCH, left))
        printed = 0
        for line in _lines(deliveries, args.event_type):
            sys.stdout.write(line)
            sys.stdout.flush()
            printed += 1
        if args.pool and deliveries:
            _commit(subscription, deliveries)
        if left is not None:
            left -= printed


def _lines(deliveries: Sequence[Delivery], wanted: re.Pattern[str] | None) -> Iterator[str]:
    for delivery in deliveries:
        try:
            notification = codec.decode(delivery.record)
            line = text.json_line(_members(notification, delivery))
        # What can be read cannot always be written: nested too deeply, a number too long.
        except (ValueError, RecursionError) as error:
            topic, number = delivery.partition
            text.note(f"{topic}, partition {number}, offset {delivery.offset}: no notification: {error}")
            continue
        if wanted is None or wanted.match(notification.event_type or ""):
            yield line + "\n"


def _members(notification: Notification, delivery: Delivery) -> dict[str, Any]:
    return notification._asdict() | {
        "topic": delivery.partition.topic,
        "partition": delivery.partition.number,
        "offset": delivery.offset,
        "recorded_at": text.iso(delivery.timestamp),
    }


def _commit(subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
    positions = {delivery.partition: delivery.offset + 1 for delivery in deliveries}
    try:
        subscription.commit(positions)
    except CommitRefused as refused:
        kept = {partition: at for partition, at in positions.items() if partition not in refused.partitions}
        text.note(f"{refused}; another listener of the pool prints these again")
        if kept and refused.partitions:
            subscription.commit(kept)
