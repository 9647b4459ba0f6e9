"""``notifier-kafka topics ...``: list, show, create, delete and purge topics."""

import abc
import argparse
import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Lister, ShowOne
from notifier_kafka.cli.exits import Declined, UsageError
from notifier_kafka.cli.output import cells, text
from notifier_kafka.contract.driver import Admin, Span, TopicDescription
from notifier_kafka.errors import ConfigurationError, TopicNotFound, TransportUnavailable

COLUMNS = ("name", "partitions", "records")
DESCRIBE_TIMEOUT_SECONDS = 10.0  # until every broker knows a new topic
RETRY_SECONDS = 0.1

Row = tuple[str, int, int]


class ListTopics(Lister):
    """List the topics on the log, with the number of records in each."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[Row]]:
        with self.program.transport() as transport:
            return COLUMNS, list(_rows(transport.driver.admin()))


class ShowTopic(ShowOne):
    """Show the partitions, storage and settings of a topic.

    'first' is the offset of a partition's first record, 'next' the offset that the next
    record will get.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _add_name(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        with self.program.transport() as transport:
            description = describe(transport.driver.admin(), parsed_args.name)
        details = dict(description.details)
        partitions = [_partition(span, details) for span in description.spans]
        (name, _, records) = _row(description)
        return ("name", "records", "partitions", "details"), (
            name,
            records,
            cells.Table(partitions),
            cells.Pairs(details),
        )


class CreateTopic(Lister):
    """Create a topic.

    The log creates a missing topic on first use, but with default settings.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_name(super().get_parser(prog_name))
        add = parser.add_argument
        add(
            "--partitions",
            type=arguments.positive,
            metavar="N",
            help="Number of partitions. Default: the driver's.",
        )
        add(
            "--set",
            type=arguments.setting,
            action="append",
            default=[],
            dest="settings",
            metavar="NAME=VALUE",
            help="A setting of the topic, by Kafka's name, such as retention.ms=86400000; repeatable.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        name = parsed_args.name
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            # Some drivers accept to create a topic again with the same settings.
            if name in admin.list_topics():
                raise ConfigurationError(f"topic {name!r} exists already")
            admin.create_topic(name, parsed_args.partitions, dict(parsed_args.settings))
            return COLUMNS, [_row_of_new_topic(admin, name, parsed_args.partitions)]


class _DestructiveCommand(Lister):
    """A command that cannot be undone: a person is asked, a program must give --yes."""

    VERB: ClassVar[str]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_name(super().get_parser(prog_name))
        parser.add_argument(
            "-y", "--yes", action="store_true", help="Do not ask. Required if there is no terminal."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Row]]:
        if not (parsed_args.yes or (sys.stdin.isatty() and sys.stderr.isatty())):
            raise UsageError(
                f"topics {self.VERB}: this cannot be undone, and there is no terminal to ask on; add --yes"
            )
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            row = _row(describe(admin, parsed_args.name))
            if parsed_args.name not in admin.list_topics():
                raise UsageError(f"topics {self.VERB}: {row[0]} is an internal topic of the log")
            where = transport.url.masked()
            if not (parsed_args.yes or _confirm(self.VERB, row, where)):
                raise Declined(f"topic {parsed_args.name!r} was not changed")
            self._remove(admin, parsed_args.name)
        return COLUMNS, [row]

    @abc.abstractmethod
    def _remove(self, admin: Admin, name: str) -> None: ...


class DeleteTopic(_DestructiveCommand):
    """Delete a topic, its records and the positions of groups in it.

    On a terminal it asks first; --yes skips the question. Prints what was deleted.
    """

    VERB = "delete"

    def _remove(self, admin: Admin, name: str) -> None:
        admin.delete_topic(name)


class PurgeTopic(_DestructiveCommand):
    """Delete the records of a topic, and keep the topic.

    Offsets continue where they were. On a terminal it asks first; --yes skips the question.
    Prints what was deleted.
    """

    VERB = "purge"

    def _remove(self, admin: Admin, name: str) -> None:
        admin.purge_topic(name)


def describe(admin: Admin, name: str) -> TopicDescription:
    """Describe a topic. The error for a missing topic is the same for every driver."""
    try:
        return admin.describe_topic(name)
    except TopicNotFound:
        raise TopicNotFound(f"there is no topic {name!r}; see 'topics list'") from None


def _add_name(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("name", metavar="NAME", help="The topic, as 'topics list' prints it.")
    return parser


def _rows(admin: Admin) -> Iterator[Row]:
    for name in sorted(admin.list_topics()):
        # A topic may be deleted meanwhile.
        with contextlib.suppress(TopicNotFound):
            yield _row(admin.describe_topic(name))


def _row(description: TopicDescription) -> Row:
    records = sum(span.stop - span.start for span in description.spans)
    return text.visible(description.name), len(description.spans), records


def _partition(span: Span, details: dict[str, str]) -> dict[str, Any]:
    """Make the row of a partition; removes the driver's details of it from ``details``."""
    number = span.partition.number
    about = details.pop(f"partition {number}", "")
    row = {"partition": number, "first": span.start, "next": span.stop, "records": span.stop - span.start}
    return row | ({"details": text.visible(about)} if about else {})


def _row_of_new_topic(admin: Admin, name: str, partitions: int | None) -> Sequence[Any]:
    """Make the row of a topic just created, also if no broker can describe it yet."""
    deadline = time.monotonic() + DESCRIBE_TIMEOUT_SECONDS
    while True:
        try:
            return _row(admin.describe_topic(name))
        except (TopicNotFound, TransportUnavailable) as error:
            if time.monotonic() > deadline:
                text.note(f"topic {name!r} was created, but cannot be described: {error}")
                return text.visible(name), partitions or cells.ABSENT, cells.ABSENT
        time.sleep(RETRY_SECONDS)


def _confirm(verb: str, row: Row, where: str) -> bool:
    name, partitions, records = row
    # Not input(), which asks on stdout: that may be a file.
    sys.stderr.write(f"{verb} {name} (partitions: {partitions}, records: {records}) on {where}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
