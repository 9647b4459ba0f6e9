"""The data of batches in parquet files: partials, starts and ends of durations, and message ids."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from spark_sinks.engine import dedupe, durations, rollup
from spark_sinks.language.metrics import Metric
from spark_sinks.state import safe_files
from spark_sinks.state.ledger import Ledger, Segment

SCHEMAS = {
    "partials": rollup.PARTIAL,
    "pairs": durations.EVENT,
    "seen": dedupe.SEEN,
}
UNITS = ["metric", "start", "width"]
PAIRED_ROWS = 1_000_000
"""About how many starts and ends of durations are paired at a time: each takes a kilobyte of memory."""


def write(table: pa.Table, ledger: Ledger, kind: str, batch: int) -> None:
    """Write data of a batch, over what an interrupted attempt may have left."""
    save(table.select(SCHEMAS[kind].names).cast(SCHEMAS[kind]), ledger.data(kind, batch))


def save(table: pa.Table, path: "os.PathLike[str]") -> None:
    """Write a parquet file atomically."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{os.fspath(path)}.part"
    with open(part, "wb", opener=safe_files.open_new) as file:
        parquet.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(
    kind: str, paths: Iterable[Path], filters: Any = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read the rows of files of a kind that pass the filters; all columns if none are named."""
    schema, columns = SCHEMAS[kind], columns or SCHEMAS[kind].names
    tables = [
        parquet.read_table(path, schema=schema, columns=columns, filters=filters, partitioning=None)
        for path in paths
    ]
    return pa.concat_tables([schema.empty_table().select(columns), *tables])


def path(ledger: Ledger, kind: str, piece: Segment) -> Path:
    """Return the path of a file of data of a kind."""
    single = ledger.data(kind, piece.first)
    return single if piece.first == piece.last else single.with_stem(f"{piece.first:08}-{piece.last:08}")


def pieces(ledger: Ledger, kind: str, since: int = 0) -> list[Segment]:
    """List the files that hold data of a kind of batches after ``since``."""
    merged = ledger.merged()
    singles = range(merged.until + 1, ledger.last() + 1)
    alone = [Segment(n, n, 1, None, None) for n in singles if ledger.data(kind, n).exists()]
    every = [*merged.files.get(kind, ()), *alone]
    return [piece for piece in every if piece.rows and piece.last > since]


def _near(ledger: Ledger, kind: str, listed: Iterable[Segment], low: float, high: float) -> list[Path]:
    """Return the paths of the files that may hold data of a time range."""
    return [
        path(ledger, kind, piece)
        for piece in listed
        if piece.low is None or piece.high is None or (piece.low <= high and piece.high >= low)
    ]


def changed(ledger: Ledger, metrics: Sequence[Metric], since: int, unite: rollup.Unite) -> pa.Table:
    """Merge the partials of every metric and window that batches after ``since`` changed.

    When ``since`` lies within a file of several batches, some unchanged windows are included.
    """
    mine = pc.field("metric").isin([metric.name for metric in metrics])
    new_files = pieces(ledger, "partials", since)
    new = load("partials", [path(ledger, "partials", piece) for piece in new_files], mine)
    found = new
    if since and len(new):
        first, last = pc.min_max(new["start"]).as_py().values()
        near = mine & (pc.field("start") >= first) & (pc.field("start") <= last)
        before = [piece for piece in pieces(ledger, "partials") if piece not in new_files]
        old = load("partials", _near(ledger, "partials", before, first, last), near)
        found = _only(pa.concat_tables([old, new]), new)
    merged = rollup.merge(found, unite)
    if not durations.any_of(metrics):
        return merged
    return pa.concat_tables([merged, _changed_durations(ledger, metrics, since, unite)])


def _only(rows: pa.Table, units: pa.Table) -> pa.Table:
    """Return the rows of some metrics and windows."""
    return rows.join(_units(units), UNITS, join_type="left semi")


def _units(rows: pa.Table) -> pa.Table:
    """Return the distinct metrics and windows of rows."""
    return rows.select(UNITS).group_by(UNITS).aggregate([])


def _changed_durations(
    ledger: Ledger, metrics: Sequence[Metric], since: int, unite: rollup.Unite
) -> pa.Table:
    """Make the partials of the windows that new events changed, some pairs at a time."""
    new_files = [path(ledger, "pairs", piece) for piece in pieces(ledger, "pairs", since)]
    if not since:
        made = _all(durations.partials(each, metrics, unite) for each in _parts(new_files))
        return rollup.merge(made, unite)
    new = load("pairs", new_files, columns=["pair", "time"])
    if not len(new):
        return rollup.PARTIAL.empty_table()
    reach = durations.reach(new, metrics)
    first, last = reach.loaded
    low, high = (pa.scalar(at, pa.int64()).cast(rollup.TIME) for at in (first, last))
    near = (pc.field("time") >= low) & (pc.field("time") <= high)
    paths = _near(ledger, "pairs", pieces(ledger, "pairs"), first / 1e6, last / 1e6)
    changed = _all(
        _units(each)
        for events in _parts(paths, near)
        for each in durations.units(durations.touched(events, new, reach), metrics)
    )
    # A window that changed is made again from all its pairs, also from unchanged ones.
    made = _all(_only(durations.partials(each, metrics, unite), changed) for each in _parts(paths, near))
    return rollup.merge(made, unite)


def _parts(paths: Sequence[Path], near: Any = None) -> Iterator[pa.Table]:
    """Read starts and ends, some at a time; those of a pair stay together."""
    rows = sum(parquet.read_metadata(path).num_rows for path in paths)
    count = 1 << (rows // PAIRED_ROWS).bit_length()
    for number in range(count):
        own = pc.bit_wise_and(pc.field("pair"), count - 1) == number
        yield load("pairs", paths, own if near is None else own & near)


def _all(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(tables))
