"""``notifier-kafka groups ...``: the groups that read, how far they are, and moving them."""

import argparse
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.commands import topics
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.output import text
from notifier_kafka.cli.output.cells import ABSENT
from notifier_kafka.contract.driver import Admin, GroupDescription, Span, Start
from notifier_kafka.errors import TopicNotFound
from notifier_kafka.listening import start_from

TO_HELP = (
    "earliest, latest, a time such as 2026-11-18T07:50 (UTC unless it says otherwise), or an "
    "offset, which a partition that does not reach so far takes as its nearest end."
)


class ListGroups(Lister):
    """List the groups (pools) on the log, with their members and how far each lies behind."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[tuple[str, int, int]]]:
        rows = []
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            for name in sorted(admin.list_groups()):
                # One may end while the list is made.
                with contextlib.suppress(TopicNotFound):
                    found = admin.describe_group(name)
                    rows.append((text.visible(name), len(found.members), sum(found.lag.values())))
        return ("name", "members", "lag"), rows


class ShowLag(Lister):
    """Show a group's members, positions and lag, by partition.

    A position is the next offset that the group reads; the lag is how many records it has to
    read from there, or from the beginning without one. Members without a partition come last.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _add_group(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            found = admin.describe_group(parsed_args.group)
            if not _is_there(admin, found):
                raise UsageError(
                    f"there is no group {parsed_args.group!r}; 'groups list' names those that are"
                )
        return ("topic", "partition", "position", "lag", "member"), list(_lag_rows(found))


class ResetGroup(Lister):
    """Move the positions of a group that has no members, forwards or backwards.

    Prints the old and the new positions, and the lag that the group then has. Nothing is
    changed without --execute.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Only in this topic as 'topics list' names it; repeatable. Without it in all where "
            "the group has positions.",
        )
        add("--to", type=arguments.place, required=True, metavar="PLACE", help=TO_HELP)
        add("--execute", action="store_true", help="Do it.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._remarks: list[str] = []
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            before = admin.describe_group(parsed_args.group)
            spans = _spans(admin, parsed_args.topic or _topics(before))
            after = start_from.resolve(transport.driver, spans, parsed_args.to)
            if parsed_args.execute:
                admin.reset_group(parsed_args.group, after)
            else:
                self._remarks = _remarks(before, parsed_args.to, there=_is_there(admin, before))
        return ("topic", "partition", "old", "new", "lag"), [
            (
                text.visible(span.partition.topic),
                span.partition.number,
                before.positions.get(span.partition, ABSENT),
                after[span.partition],
                span.stop - after[span.partition],
            )
            for span in spans
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        result = super().run(parsed_args)
        # After the positions that they are about.
        self.app.stdout.flush()
        for remark in self._remarks:
            text.note(remark)
        return result


def _add_group(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("group", metavar="GROUP", help="The group as 'groups list' names it.")
    return parser


def _is_there(admin: Admin, found: GroupDescription) -> bool:
    return bool(found.members or found.positions) or found.name in admin.list_groups()


def _lag_rows(found: GroupDescription) -> Iterable[Sequence[Any]]:
    owners = {partition: member for member, owned in found.members.items() for partition in owned}
    for partition in sorted(found.positions.keys() | owners.keys() | found.lag.keys()):
        yield (
            text.visible(partition.topic),
            partition.number,
            found.positions.get(partition, ABSENT),
            found.lag.get(partition, ABSENT),
            text.visible(owners[partition]) if partition in owners else ABSENT,
        )
    for member in sorted(member for member, owned in found.members.items() if not owned):
        yield ABSENT, ABSENT, ABSENT, ABSENT, text.visible(member)


def _topics(found: GroupDescription) -> list[str]:
    names = sorted({partition.topic for partition in found.positions})
    if not names:
        raise UsageError(f"group {found.name!r} has no positions; say where with --topic")
    return names


def _spans(admin: Admin, names: Sequence[str]) -> list[Span]:
    return [span for name in dict.fromkeys(names) for span in topics.describe(admin, name).spans]


def _remarks(before: GroupDescription, to: Start | int, *, there: bool) -> list[str]:
    remarks = []
    if not there:
        remarks.append(f"there is no group {before.name!r}; it would be a new one")
    if before.members:
        remarks.append(f"members are active in the group ({len(before.members)}): stop them first")
    place = text.iso(to) if isinstance(to, float) else to
    return [*remarks, f"a dry run, to {place}: nothing was changed; --execute does it"]
