"""What batches left behind: their partials, starts and ends, and ids, in files of parquet."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from spark_sinks import durations, rollup
from spark_sinks.ledger import Ledger
from spark_sinks.metrics import Duration, Metric

SCHEMAS = {
    "partials": rollup.PARTIAL,
    "pairs": durations.EVENT,
    "seen": pa.schema({"id": pa.int64()}),
}
UNITS = ["metric", "start", "width"]


def write(table: pa.Table, ledger: Ledger, kind: str, batch: int) -> None:
    """Keep what a batch made, in the place of what an interrupted attempt at it may have left."""
    save(table.select(SCHEMAS[kind].names).cast(SCHEMAS[kind]), ledger.data(kind, batch))


def save(table: pa.Table, path: "os.PathLike[str]") -> None:
    """Write a file of parquet that is there whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{os.fspath(path)}.part"
    # The ids are random: nothing makes them smaller.
    parquet.write_table(table, part, compression="snappy" if len(table.schema) > 1 else "none")
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    os.replace(part, path)


def read(ledger: Ledger, kind: str, batches: Iterable[int], filters: Any = None) -> pa.Table:
    """Read what some batches made, as far as it passes the filters."""
    paths = [path for batch in batches if (path := ledger.data(kind, batch)).exists()]
    tables = [
        parquet.read_table(path, schema=SCHEMAS[kind], filters=filters, partitioning=None) for path in paths
    ]
    return pa.concat_tables([SCHEMAS[kind].empty_table(), *tables])


def changed(ledger: Ledger, metrics: Sequence[Metric], since: int, unite: rollup.Unite) -> pa.Table:
    """Merge the partials of every metric and window that batches after ``since`` touched."""
    every = list(range(1, ledger.last() + 1))
    mine = pc.field("metric").isin([metric.name for metric in metrics])
    new = read(ledger, "partials", every[since:], mine)
    found = new
    if since and len(new):
        first, last = pc.min_max(new["start"]).as_py().values()
        near = mine & (pc.field("start") >= first) & (pc.field("start") <= last)
        found = _only(pa.concat_tables([read(ledger, "partials", every[:since], near), new]), new)
    merged = rollup.merge(found, unite)
    if not durations.any_of(metrics):
        return merged
    return pa.concat_tables([merged, _changed_durations(ledger, metrics, since, unite)])


def _only(rows: pa.Table, units: pa.Table) -> pa.Table:
    """Return the rows that are of one of the metrics and windows."""
    return rows.join(units.select(UNITS).group_by(UNITS).aggregate([]), UNITS, join_type="left semi")


def _changed_durations(
    ledger: Ledger, metrics: Sequence[Metric], since: int, unite: rollup.Unite
) -> pa.Table:
    every = range(1, ledger.last() + 1)
    new = read(ledger, "pairs", every[since:])
    if not len(new):
        return rollup.PARTIAL.empty_table()
    near = None
    if since:
        before, after = (pa.scalar(each * 1_000_000, pa.duration("us")) for each in durations.reach(metrics))
        first, last = (pc.min_max(new["time"])[name] for name in ("min", "max"))
        near = (pc.field("time") >= pc.subtract(first, before)) & (pc.field("time") <= pc.add(last, after))
    events = read(ledger, "pairs", every, near)
    made = durations.partials(events, metrics, unite)
    if not since:
        return made
    ends = durations.touched(events, new)
    units = [
        each
        for metric in metrics
        if isinstance(metric.value, Duration)
        for each in durations.windows(ends.filter(pc.equal(ends["metric"], metric.name)), metric)
    ]
    return _only(made, pa.concat_tables(units))
