"""``notifier-kafka replay``: copy a range of a topic to another topic."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from notifier_kafka.cli import arguments, republish
from notifier_kafka.cli.command import Lister
from notifier_kafka.cli.commands import topics
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.output import text
from notifier_kafka.contract.driver import Driver, Record, Span
from notifier_kafka.listening import replay

TIME = "a time such as 2026-11-18T07:50 (UTC unless it has a time zone)"
SINCE_HELP = (
    f"Where to begin: earliest, latest, {TIME}, or an offset for every partition. Default: %(default)s."
)


class Replay(Lister):
    """Copy the records of a topic, or a range of them, to another topic.

    The copies have the same bytes, keys, headers and message ids. Records with the same key
    stay in order. No group's position changes. To have a group read the same topic again, use
    'groups reset --to' instead. Prints what was copied from each partition.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("from_topic", metavar="FROM_TOPIC", help="The topic to copy from, as 'topics list' prints it.")
        add("to_topic", metavar="TO_TOPIC", help="The topic to copy to. It is created if it does not exist.")
        add("--since", type=arguments.offset_or_time, default="earliest", metavar="POSITION", help=SINCE_HELP)
        add(
            "--until",
            type=arguments.moment,
            metavar="TIME",
            help=f"Where to end: before {TIME}. Default: at the end of the topic.",
        )
        add("--dry-run", action="store_true", help="Only print what would be copied.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        source, target = parsed_args.from_topic, parsed_args.to_topic
        if source == target:
            raise UsageError(
                f"replay: {source!r} cannot be replayed onto itself: its groups would get every record twice"
            )
        self._is_dry_run = parsed_args.dry_run
        with self.program.transport() as transport:
            driver = transport.driver
            topics.describe(driver.admin(), source)
            spans = replay.spans(driver, [source], parsed_args.since, parsed_args.until)
            if not self._is_dry_run:
                republish.republish(driver, _records(driver, spans, target))
        return ("topic", "partition", "first", "next", "records"), [
            (text.visible(source), s.partition.number, s.start, s.stop, s.stop - s.start) for s in spans
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        result = super().run(parsed_args)
        self.app.stdout.flush()
        if self._is_dry_run:
            text.note("a dry run: nothing was published")
        return result


def _records(driver: Driver, spans: Sequence[Span], target: str) -> Iterator[Record]:
    for span in spans:
        for delivery in driver.read(span):
            yield delivery.record._replace(topic=target)
