"""What ``aggregate`` says of itself: sentences beside what the outputs print, or data on stdout."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from notifier_kafka.cli.output import notification_lines, text
from notifier_kafka.contract.driver import Span
from spark_sinks.job.run_report import RunReport
from spark_sinks.state import plan

REPORT_COLUMNS = (
    "read",
    "decoded",
    "malformed",
    "duplicate",
    "late",
    "misdated",
    "lost",
    "batches",
    "seconds",
)
SPAN_COLUMNS = ("topic", "partition", "first", "next", "records")


class RunPrinter:
    """Tells in the form that was asked for; CSV begins with its header."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._began = False

    def run(self, sums: RunReport, sentences: Callable[[RunReport], Iterable[str]]) -> None:
        """Tell what a run did."""
        if self._form == "table":
            for line in sentences(sums):
                text.note(line)
            return
        found = dataclasses.asdict(sums) | {"seconds": round(sums.seconds, 3)}
        self._row({name: found[name] for name in REPORT_COLUMNS}, found)

    def spans(self, spans: Sequence[Span]) -> None:
        """Tell what a run would read."""
        if self._form == "table":
            for (topic, number), start, stop in spans:
                text.note(f"{topic}[{number}]: offsets {start} to {stop}")
            text.note(
                f"{plan.records(spans)} records in {len({span.partition for span in spans})} partitions"
            )
            return
        for (topic, number), start, stop in spans:
            row = dict(zip(SPAN_COLUMNS, (topic, number, start, stop, stop - start), strict=True))
            self._row(row, row)

    def _row(self, row: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        cells = [text.visible(str(value)) for value in row.values()]
        if self._form == "csv" and not self._began:
            _print(notification_lines.csv_line(list(row)))
        self._began = True
        _print(
            {"json": text.json_line(whole), "csv": notification_lines.csv_line(cells)}.get(
                self._form, " ".join(cells)
            )
        )


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
