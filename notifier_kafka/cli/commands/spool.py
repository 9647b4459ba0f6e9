"""``notifier-kafka spool ...``: show and send what waits on this machine's disk for the log."""

import argparse
import logging
import pathlib
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Lister, ShowOne
from notifier_kafka.cli.exits import Partial
from notifier_kafka.cli.output import text
from notifier_kafka.cli.output.cells import ABSENT
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Limits
from notifier_kafka.errors import ConfigurationError, LogUnusable, MessagingException
from notifier_kafka.spool import spool_directory, spool_file, spool_forwarder
from notifier_kafka.stats import counters, losses

if TYPE_CHECKING:
    from notifier_kafka.publishing.transport import NotificationTransport

LOG = logging.getLogger(__name__)

COLUMNS = ("file", "pid", "owner", "records", "bytes", "oldest")
DEFAULT_TIMEOUT_SECONDS = 60.0


class ShowSpool(Lister):
    """Show the spool's files: the process that owns each, and the records not sent yet.

    If the owner is gone, the next process that publishes with this spool sends the file, or
    'spool flush' does.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _add_directory(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        conf = self.program.configuration()
        directory = _directory(conf, parsed_args.directory)
        opener = spool_file.opener(conf, 0)
        return COLUMNS, [_row(seen, opener) for seen in spool_directory.listing(directory)]


class FlushSpool(ShowOne):
    """Send the spool files of processes that are gone.

    Running processes send their own files. The exit code is 4 if records remain.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_directory(super().get_parser(prog_name))
        parser.add_argument(
            "--timeout",
            type=arguments.seconds,
            default=DEFAULT_TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="How long to try. Default: %(default)g.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        with self.program.transport() as transport:
            directory = _directory(transport.conf, parsed_args.directory)
            counts, left = _flush(transport, directory, time.monotonic() + parsed_args.timeout)
        sent = counts.pop("forwarded", 0)
        self._unsent = (left, sum(counts.values()))
        return ("directory", "sent", "remain", "given_up"), (
            text.visible(str(directory)),
            sent,
            *self._unsent,
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        result: int = super().run(parsed_args)
        self.app.stdout.flush()
        if any(self._unsent):
            left, lost = self._unsent
            raise Partial(f"spool flush: {left} records remain, {lost} were given up")
        return result


def _flush(
    transport: "NotificationTransport", directory: pathlib.Path, deadline: float
) -> tuple[dict[str, int], int]:
    """Send until the deadline; return the outcomes with their counts, and how many records remain."""
    settings = options.notifications(transport.conf)
    counted = losses.Losses(counters.Counters(LOG))
    opener = spool_file.opener(transport.conf, settings.spool_bytes)
    bus = transport.driver.publisher(counted.lose, Limits())
    forwarder = spool_forwarder.Forwarder(
        lambda: bus, settings.spool_age, counted, lambda: time.monotonic() > deadline
    )
    left = 0
    owned, _ = spool_directory.adopt(directory)
    for each in owned:
        file = spool_file.SpoolFile(each, opener(each.path), Limits(), counted.lose)
        try:
            while time.monotonic() < deadline and forwarder.forward(file):
                pass
        except LogUnusable as error:
            LOG.error("A spool file is unusable and is set aside; it may hold records: %s", error)
            file.set_aside()
            left += 1
        else:
            left += file.leave()
    bus.close()
    counted.counters.report()
    return counted.counters.counts(), left


def _add_directory(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--directory", metavar="DIR", help="The spool's directory. Default: [notifications] spool_dir."
    )
    return parser


def _directory(conf: cfg.ConfigOpts, given: str | None) -> pathlib.Path:
    name = given or options.notifications(conf).spool_dir
    if not name:
        raise ConfigurationError("[notifications] spool_dir is not set; name a directory with --directory")
    return spool_directory.named(name)


def _row(file: spool_directory.Seen, opener: spool_file.Opener) -> Sequence[Any]:
    records: Any = ABSENT
    oldest: Any = ABSENT
    # Opening would create a missing file.
    if file.path.exists():
        log = opener(file.path)
        try:
            waiting = spool_file.waiting(log)
        except MessagingException as error:
            LOG.warning("%s", error)
        else:
            records = waiting.records
            oldest = ABSENT if waiting.oldest is None else text.iso(waiting.oldest)
        finally:
            log.close()
    owner = "alive" if file.alive else "gone"
    return text.visible(file.path.name), file.pid, owner, records, file.size, oldest
