"""``notifier-kafka metrics show`` and ``metrics compact``: what an output holds."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from notifier_kafka.cli import arguments
from notifier_kafka.cli.command import Command, Lister
from notifier_kafka.cli.exits import UsageError
from notifier_kafka.cli.output import text
from spark_sinks.cli import sparklines
from spark_sinks.job import settings

COLUMNS = ("metric", "window_start", "window_end", "group", "value", "unit")


class ShowMetrics(Lister):
    """Show the metric rows in files or a database, as a table or as one line of bars for each group."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add(
            "output",
            nargs="?",
            metavar="KIND:PLACE",
            help="parquet:DIR, csv:DIR, json:DIR or jdbc:URL. Default: the first such output configured.",
        )
        add(
            "--metric",
            metavar="PATTERN",
            default="*",
            help="Only metrics with such names; * and ? are wildcards.",
        )
        add("--since", type=arguments.moment, metavar="TIME", help="Only windows that end after this time.")
        add(
            "--until", type=arguments.moment, metavar="TIME", help="Only windows that begin before this time."
        )
        add("--chart", action="store_true", help="One line for each metric and group, with bars over time.")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        from spark_sinks.outputs import reader

        kinds = ("parquet:", "csv:", "json:", "jdbc:")
        output = parsed_args.output or next((o for o in _outputs(self) if o.startswith(kinds)), None)
        if output is None:
            raise UsageError("metrics show: name an output, such as parquet:/var/lib/metrics")
        found = list(_visible(reader.read(output, parsed_args.metric, parsed_args.since, parsed_args.until)))
        return (sparklines.COLUMNS, sparklines.lines_of(found)) if parsed_args.chart else (COLUMNS, found)


class CompactMetrics(Lister):
    """Merge the many small files of a parquet output into few large ones. A job may write there meanwhile."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "output",
            nargs="*",
            metavar="parquet:DIR",
            help="Outputs to compact. Default: all parquet outputs in the configuration.",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        from spark_sinks.outputs import compaction

        outputs = parsed_args.output or [o for o in _outputs(self) if o.startswith("parquet:")]
        if not outputs or not all(output.startswith("parquet:") for output in outputs):
            raise UsageError("metrics compact: name outputs such as parquet:/var/lib/metrics")
        rows = [(o, *compaction.compact(Path(o.removeprefix("parquet:")))) for o in outputs]
        return ("output", "files_before", "files_after"), rows


def _outputs(command: Command) -> Sequence[str]:
    return settings.read(command.program.configuration()).outputs


def _visible(found: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    # Every text is made safe to print: others may have written the rows.
    for row in found:
        yield [text.visible(cell) if isinstance(cell, str) else cell for cell in row]
