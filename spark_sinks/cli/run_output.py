"""What ``aggregate`` prints about a run: sentences on stderr, or data on stdout."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
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
    """Prints in the chosen format. CSV begins with a header."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._began = False

    def run(self, report: RunReport) -> None:
        """Print what a run did."""
        if self._form == "table":
            for line in sentences(report):
                text.note(line)
            return
        found = dataclasses.asdict(report) | {"seconds": round(report.seconds, 3)}
        self._row({name: found[name] for name in REPORT_COLUMNS}, found)

    def spans(self, spans: Sequence[Span]) -> None:
        """Print what a run would read."""
        if self._form == "table":
            for (topic, number), start, stop in spans:
                text.note(f"{topic}[{number}]: offsets {start} to {stop}")
            partitions = len({span.partition for span in spans})
            text.note(f"{_counted(plan.records(spans), 'record')} in {_counted(partitions, 'partition')}")
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


def sentences(report: RunReport) -> Iterator[str]:
    """Describe what a run did."""
    for partition, (start, stop) in sorted(report.offsets.items()):
        yield f"{partition}: offsets {start} to {stop}"
    yield (
        f"{report.read} read in {report.batches} batch{'es' * (report.batches != 1)}: "
        f"{report.decoded} counted, {report.malformed} malformed, {report.duplicate} duplicate; "
        f"{report.late} late, {report.misdated} counted at the time of their record"
    )
    if report.lost:
        yield f"{_counted(report.lost, 'record')} deleted before being counted"
    for name, rows in report.rows.items():
        yield f"{name}: {_counted(rows, 'metric row')}"
    for name, reason in report.failures.items():
        yield f"{name} failed: {reason}"
    yield f"{report.seconds:.1f} seconds"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
