"""Outputs of a job, written by its own sink and ledger, of notifications that a test makes up."""

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from oslo_config import cfg

from notifier_kafka.contract.driver import Partition, Span
from spark_sinks.outputs import rows
from spark_sinks.outputs.files import ParquetSink
from spark_sinks.state.ledger import Ledger
from spark_sinks.state.plan import Plan

MIDNIGHT = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
WIDTHS = (60, 3600, 86_400)

Group = dict[str, str]
Row = tuple[str, str, datetime.datetime, datetime.datetime, list[tuple[str, str]], float]


class Told(NamedTuple):
    """A notification as far as the page tells of it; ``second`` counts from a midnight."""

    second: int
    event_type: str
    publisher: str
    priority: str = "INFO"


def row(metric: str, unit: str, start: int, width: int, group: Group, value: float) -> Row:
    begin = MIDNIGHT + datetime.timedelta(seconds=start)
    return metric, unit, begin, begin + datetime.timedelta(seconds=width), list(group.items()), value


def counted(told: Iterable[Told], widths: Sequence[int] = WIDTHS) -> list[Row]:
    """Make the rows that the default metric has of notifications."""
    told = list(told)
    found = []
    for width in widths:
        sums = Counter((one.second // width * width, *one[1:]) for one in told)
        for (start, event_type, publisher, priority), count in sums.items():
            group = {"event_type": event_type, "publisher": publisher, "priority": priority}
            found.append(row("notifications.count", "notifications", start, width, group, count))
    return found


def write(directory: Path, made: Sequence[Row], **sums: object) -> None:
    """Write the next batch of an output and of its job."""
    columns = [pa.array(list(c), f.type) for c, f in zip(zip(*made, strict=True), rows.ROW, strict=True)]
    ledger = Ledger(directory / "_job")
    noted = {"read": 0, "decoded": 0, "duplicate": 0, "misdated": 0, "late": 0, "malformed": {}}
    with ledger.locked({"input": "sqlite:////var/log.db"}, {}):
        batch = ledger.last() + 1
        plan = Plan(batch, (Span(Partition("shop.info", 0), batch * 100, batch * 100 + 100),))
        ledger.write_plan(plan)
        ledger.write_counted(
            plan, noted | {"newest": None, "oldest_logged": 0.0, "newest_logged": 0.0} | sums
        )
    ParquetSink(str(directory), cfg.ConfigOpts()).write(ledger.job, batch, pa.table(columns, schema=rows.ROW))
