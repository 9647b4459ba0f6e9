"""``notifier-kafka groups ...``: list groups, show their lag, and reset their positions."""

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
    "The new position: earliest, latest, a time such as 2026-11-18T07:50 (UTC unless it has a "
    "time zone), or an offset. A partition that does not have this offset takes the nearest one."
)


class ListGroups(Lister):
    """List the groups (pools) on the log, with their number of members and their lag."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - the signature is cliff's
    ) -> tuple[Sequence[str], Iterable[tuple[str, int, int]]]:
        rows = []
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            for name in sorted(admin.list_groups()):
                # A group may disappear meanwhile.
                with contextlib.suppress(TopicNotFound):
                    description = admin.describe_group(name)
                    rows.append((text.visible(name), len(description.members), sum(description.lag.values())))
        return ("name", "members", "lag"), rows


class ShowLag(Lister):
    """Show a group's members, positions and lag, by partition.

    The position is the next offset that the group reads. The lag is the number of records from
    there to the end, or all records if there is no position. Members without a partition come last.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _add_group(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            description = admin.describe_group(parsed_args.group)
            if not _exists(admin, description):
                raise UsageError(f"there is no group {parsed_args.group!r}; see 'groups list'")
        return ("topic", "partition", "position", "lag", "member"), list(_lag_rows(description))


class ResetGroup(Lister):
    """Move the positions of a group, forwards or backwards.

    The group must have no members. Prints the old and the new positions, and the lag after
    the reset. Without --execute this is a dry run.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _add_group(super().get_parser(prog_name))
        add = parser.add_argument
        add(
            "--topic",
            action="append",
            metavar="T",
            help="Only in this topic, as 'topics list' prints it; repeatable. Default: all topics "
            "where the group has positions.",
        )
        add("--to", type=arguments.offset_or_time, required=True, metavar="POSITION", help=TO_HELP)
        add("--execute", action="store_true", help="Change the positions. Without it, a dry run.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._remarks: list[str] = []
        with self.program.transport() as transport:
            admin = transport.driver.admin()
            before = admin.describe_group(parsed_args.group)
            spans = _spans(admin, parsed_args.topic or _topics_with_positions(before))
            after = start_from.resolve(transport.driver, spans, parsed_args.to)
            if parsed_args.execute:
                admin.reset_group(parsed_args.group, after)
            else:
                self._remarks = _remarks(before, parsed_args.to, exists=_exists(admin, before))
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
        # The remarks follow the positions on stdout.
        self.app.stdout.flush()
        for remark in self._remarks:
            text.note(remark)
        return result


def _add_group(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("group", metavar="GROUP", help="The group, as 'groups list' prints it.")
    return parser


def _exists(admin: Admin, description: GroupDescription) -> bool:
    return bool(description.members or description.positions) or description.name in admin.list_groups()


def _lag_rows(description: GroupDescription) -> Iterable[Sequence[Any]]:
    owners = {partition: member for member, owned in description.members.items() for partition in owned}
    for partition in sorted(description.positions.keys() | owners.keys() | description.lag.keys()):
        yield (
            text.visible(partition.topic),
            partition.number,
            description.positions.get(partition, ABSENT),
            description.lag.get(partition, ABSENT),
            text.visible(owners[partition]) if partition in owners else ABSENT,
        )
    for member in sorted(member for member, owned in description.members.items() if not owned):
        yield ABSENT, ABSENT, ABSENT, ABSENT, text.visible(member)


def _topics_with_positions(description: GroupDescription) -> list[str]:
    names = sorted({partition.topic for partition in description.positions})
    if not names:
        raise UsageError(f"group {description.name!r} has no positions; name the topics with --topic")
    return names


def _spans(admin: Admin, names: Sequence[str]) -> list[Span]:
    return [span for name in dict.fromkeys(names) for span in topics.describe(admin, name).spans]


def _remarks(before: GroupDescription, to: Start | int, *, exists: bool) -> list[str]:
    remarks = []
    if not exists:
        remarks.append(f"there is no group {before.name!r}; this would create it")
    if before.members:
        remarks.append(f"the group has active members ({len(before.members)}): stop them first")
    target = text.iso(to) if isinstance(to, float) else to
    return [*remarks, f"a dry run, to {target}: nothing was changed; --execute resets the group"]
