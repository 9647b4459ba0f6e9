"""``notifier-kafka topics ...``: the topics on the log."""

import abc
import argparse
import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Lister, ShowOne
from notifier_kafka.cli.exits import CalledOff, UsageError
from notifier_kafka.cli.output import cells, text
from notifier_kafka.contract.driver import Admin, Span, TopicDescription
from notifier_kafka.errors import ConfigurationError, TopicNotFound, TransportUnavailable

COLUMNS = ("name", "partitions", "records")
PATIENCE = 10.0  # seconds until every broker knows a topic that one of them made, or answers at all
PAUSE = 0.1

Row = tuple[str, int, int]


class ListTopics(Lister):
    """List the topics on the log, with how many records each holds now."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[Row]]:
        with self.program.transport() as transport:
            return COLUMNS, list(_rows(transport.driver.admin()))


class ShowTopic(ShowOne):
    """Show what a topic's partitions hold, where they lie, and the topic's settings.

    A partition's records have the offsets from first on; next is what the next one gets.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _add_name(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        with self.program.transport() as transport:
            found = describe(transport.driver.admin(), parsed_args.name)
        details = dict(found.details)
        partitions = [_partition(span, details) for span in found.spans]
        (name, _, records) = _row(found)
        return ("name", "records", "partitions", "details"), (
            name,
            records,
            cells.Table(partitions),
            cells.Pairs(details),
        )


class CreateTopic(Lister):
    """Make a topic. A log makes one by itself on first use, with its own idea of the shape."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_name(super().get_parser(prog_name))
        add = parser.add_argument
        add("--partitions", type=arguments.positive, metavar="N", help="The driver's default without it.")
        add(
            "--set",
            type=arguments.setting,
            action="append",
            default=[],
            dest="settings",
            metavar="NAME=VALUE",
            help="A setting of the topic by Kafka's name, such as retention.ms=86400000; repeatable.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        name = parsed_args.name
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            # Not every driver minds when it is there in the shape asked for.
            if name in admin.list_topics():
                raise ConfigurationError(f"topic {name!r} is there already")
            admin.create_topic(name, parsed_args.partitions, dict(parsed_args.settings))
            return COLUMNS, [_made(admin, name, parsed_args.partitions)]


class _Removal(Lister):
    """What cannot be undone: asks a person, and wants --yes from a program."""

    VERB: ClassVar[str]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_name(super().get_parser(prog_name))
        parser.add_argument(
            "-y", "--yes", action="store_true", help="Do not ask. Needed without a terminal to ask on."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Row]]:
        if not (parsed_args.yes or (sys.stdin.isatty() and sys.stderr.isatty())):
            raise UsageError(
                f"topics {self.VERB}: this cannot be undone and there is no terminal to ask on; add --yes"
            )
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            row = _row(describe(admin, parsed_args.name))
            if parsed_args.name not in admin.list_topics():
                raise UsageError(f"topics {self.VERB}: {row[0]} is the log's own, for its books")
            where = transport.url.masked()
            if not (parsed_args.yes or _agreed(self.VERB, row, where)):
                raise CalledOff(f"topic {parsed_args.name!r} was left as it is")
            self._remove(admin, parsed_args.name)
        return COLUMNS, [row]

    @abc.abstractmethod
    def _remove(self, admin: Admin, name: str) -> None: ...


class DeleteTopic(_Removal):
    """Delete a topic, its records and the positions of groups in it; print what there was.

    Asks first on a terminal; --yes answers.
    """

    VERB = "delete"

    def _remove(self, admin: Admin, name: str) -> None:
        admin.delete_topic(name)


class PurgeTopic(_Removal):
    """Delete the records of a topic and keep the topic; print what there was.

    Offsets go on from where they were. Asks first on a terminal; --yes answers.
    """

    VERB = "purge"

    def _remove(self, admin: Admin, name: str) -> None:
        admin.purge_topic(name)


def describe(admin: Admin, name: str) -> TopicDescription:
    """Describe a topic; that it is not there is said in the same words for every log."""
    try:
        return admin.describe_topic(name)
    except TopicNotFound:
        raise TopicNotFound(f"there is no topic {name!r}; 'topics list' names those that are") from None


def _add_name(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("name", metavar="NAME", help="The topic as 'topics list' names it.")
    return parser


def _rows(admin: Admin) -> Iterator[Row]:
    for name in sorted(admin.list_topics()):
        # One may be deleted while the list is made.
        with contextlib.suppress(TopicNotFound):
            yield _row(admin.describe_topic(name))


def _row(found: TopicDescription) -> Row:
    records = sum(span.stop - span.start for span in found.spans)
    return text.visible(found.name), len(found.spans), records


def _partition(span: Span, details: dict[str, str]) -> dict[str, Any]:
    """Make a row for a partition; takes out of ``details`` what the driver says of it."""
    number = span.partition.number
    about = details.pop(f"partition {number}", "")
    row = {"partition": number, "first": span.start, "next": span.stop, "records": span.stop - span.start}
    return row | ({"details": text.visible(about)} if about else {})


def _made(admin: Admin, name: str, partitions: int | None) -> Sequence[Any]:
    """Make the row of a topic just made, which it is also when nobody says yet what it looks like."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return _row(admin.describe_topic(name))
        except (TopicNotFound, TransportUnavailable) as error:
            if time.monotonic() > deadline:
                text.note(f"topic {name!r} was made; {error}")
                return text.visible(name), partitions or cells.ABSENT, cells.ABSENT
        time.sleep(PAUSE)


def _agreed(verb: str, row: Row, where: str) -> bool:
    name, partitions, records = row
    # Not input(): it would ask on stdout, which may lead elsewhere.
    sys.stderr.write(f"{verb} {name} (partitions: {partitions}, records: {records}) on {where}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
