"""``notifier-kafka send``: publish notifications and wait until they are durable."""

import argparse
import itertools
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from notifier_kafka.cli import payloads
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.exits import Partial
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Receipt
from notifier_kafka.errors import ConfigurationError, MessagingException
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.publishing import notifier
from notifier_kafka.publishing.transport import NotificationTransport

COLUMNS = ("topic", "partition", "offset")
BATCH_NOTIFICATIONS = 5_000
PAYLOAD_HELP = (
    "JSON, @FILE, or - for standard input. With --lines, each line of the file or of standard "
    "input is the payload of one notification."
)


class Send(Lister):
    """Publish notifications, and print the position of each once it is durable.

    If [notifications] driver is not set, the format is messagingv2, which oslo.messaging can
    read too.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("payload", metavar="PAYLOAD", help=PAYLOAD_HELP)
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Publish to this topic instead of the configured ones; repeatable.",
        )
        add("--priority", choices=PRIORITIES, default="info", help="Default: %(default)s.")
        add("--publisher-id", metavar="ID", help="The publisher. Default: this program and host.")
        add(
            "--event-type",
            metavar="E",
            default="notifier-kafka.send",
            help="The type of the event. Default: %(default)s.",
        )
        add("--key", metavar="K", help="Key of the records. Notifications with the same key stay in order.")
        add("--lines", action="store_true", help="Publish each line as one notification.")
        add("--text", action="store_true", help="The payload is text, not JSON; it is sent as a string.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._failure: MessagingException | None = None
        self._sent = 0
        rows = self._rows(parsed_args)
        first = list(itertools.islice(rows, 1))
        if self._failure and not self._sent:
            raise self._failure
        return COLUMNS, itertools.chain(first, rows)

    def run(self, parsed_args: argparse.Namespace) -> int:
        # What was sent is printed before the error.
        result = super().run(parsed_args)
        if self._failure:
            raise Partial(f"stopped after {self._sent} sent: {self._failure}") from self._failure
        return result

    def _rows(self, args: argparse.Namespace) -> Iterator[Sequence[Any]]:
        try:
            with self.program.transport() as transport:
                sender = _sender(transport, args)
                for batch in _batches(args):
                    for partition, offset in self._send(sender, args, batch):
                        yield (*partition, offset)
                    # A program that writes to our pipe sees each line acknowledged before the next.
                    self.app.stdout.flush()
        except MessagingException as error:
            self._failure = error

    def _send(self, sender: notifier.Notifier, args: argparse.Namespace, batch: list[Any]) -> list[Receipt]:
        receipts = sender.send_many({}, args.priority, [(args.event_type, each) for each in batch])
        if batch and not receipts:
            raise ConfigurationError(
                "[notifications] driver: the configured channels do not publish to the log; messagingv2 does"
            )
        self._sent += len(batch)
        return receipts or []


def _batches(args: argparse.Namespace) -> Iterator[list[Any]]:
    if not args.lines:
        yield [payloads.read_one(args.payload, as_text=args.text)]
        return
    for block in payloads.read_lines(args.payload, as_text=args.text):
        for start in range(0, len(block), BATCH_NOTIFICATIONS):
            yield block[start : start + BATCH_NOTIFICATIONS]


def _sender(transport: NotificationTransport, args: argparse.Namespace) -> notifier.Notifier:
    configured = options.notifications(transport.conf).driver
    sender = notifier.Notifier(
        transport,
        publisher_id=args.publisher_id or f"notifier-kafka.{socket.gethostname()}",
        driver=None if configured else "messagingv2",
        topics=args.topic,
        key=None if args.key is None else lambda _: str(args.key),
    )
    return sender.prepare(wait=True)
