"""``notifier-kafka replay``: a range of one topic again, on another."""

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

WHEN = "a time such as 2026-11-18T07:50 (UTC unless it says otherwise)"
SINCE = f"Begin at earliest, which is the default, latest, {WHEN}, or an offset of each partition."


class Replay(Lister):
    """Publish what a topic holds, or a part of it, once more to another topic.

    Records keep their bytes, keys and headers, and so the message ids; those with the same
    key stay in order. No group is touched: listen on the other topic to get them. To have a
    group read them again, move it with 'groups reset --to'. Prints what was taken of each partition.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add("from_topic", metavar="FROM_TOPIC", help="The topic as 'topics list' names it.")
        add("to_topic", metavar="TO_TOPIC", help="Where to; it is made if it is not there.")
        add("--since", type=arguments.place, default="earliest", metavar="PLACE", help=SINCE)
        add("--until", type=arguments.moment, metavar="WHEN", help=f"End before {WHEN}.")
        add("--dry-run", action="store_true", help="Say only what would be published.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        source, target = parsed_args.from_topic, parsed_args.to_topic
        if source == target:
            raise UsageError(f"replay: {source!r} onto itself would double it for every group that reads it")
        self._dry = parsed_args.dry_run
        with self.program.transport() as transport:
            driver = transport.driver
            topics.describe(driver.admin(), source)
            spans = replay.spans(driver, [source], parsed_args.since, parsed_args.until)
            if not self._dry:
                republish.republish(driver, _records(driver, spans, target))
        return ("topic", "partition", "first", "next", "records"), [
            (text.visible(source), s.partition.number, s.start, s.stop, s.stop - s.start) for s in spans
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        result = super().run(parsed_args)
        self.app.stdout.flush()
        if self._dry:
            text.note("a dry run: nothing was published")
        return result


def _records(driver: Driver, spans: Sequence[Span], target: str) -> Iterator[Record]:
    for span in spans:
        for delivery in driver.read(span):
            yield delivery.record._replace(topic=target)
