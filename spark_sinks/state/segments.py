"""Merges the many files of single batches into few.

``merged.json`` names the merged files and the last batch in them. It is replaced after these are
complete, and only then the files of single batches are removed. So whenever this is interrupted,
each batch is in exactly one file that is read.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from spark_sinks.engine import rollup
from spark_sinks.state import partials
from spark_sinks.state.ledger import Ledger, Segment

MERGE_AFTER_BATCHES = 16
"""Batches after which their files are merged."""
MAX_FILE_ROWS = 200_000
"""The most rows of a merged file, so that merging does not get slower with time. A batch with more
rows keeps its own file."""

_ORDERED = {"partials": "start", "pairs": "time"}


def merge(ledger: Ledger, unite: rollup.Unite, horizon: float) -> None:
    """Merge the files of the batches since the last time, when there are enough of them.

    Call it within the ledger's ``locked``. Files of ids are merged within ``horizon`` seconds.
    """
    done, last = ledger.merged(), ledger.last()
    if last - done.until < MERGE_AFTER_BATCHES:
        return
    made = {}
    for kind in partials.SCHEMAS:
        pieces = [*done.files.get(kind, [])[-1:], *_singles(ledger, kind, done.until, last)]
        groups = _groups(pieces, horizon if kind == "seen" else float("inf"))
        merged = [_write(ledger, kind, group, unite) for group in groups]
        made[kind] = [*done.files.get(kind, [])[:-1], *merged]
    ledger.write_merged(last, made)
    _tidy(ledger, last, made)


def _singles(ledger: Ledger, kind: str, after: int, last: int) -> Iterator[Segment]:
    for batch in range(after + 1, last + 1):
        path = ledger.data(kind, batch)
        rows = parquet.read_metadata(path).num_rows if path.exists() else 0
        low = high = None
        if kind == "seen" and rows:
            sums = ledger.sums(batch)
            low, high = sums["oldest_logged"], sums["newest_logged"]
        elif rows:
            low, high = _ends(parquet.ParquetFile(path).read([_ORDERED[kind]]), kind)
        yield Segment(batch, batch, rows, low, high)


def _ends(table: pa.Table, kind: str) -> tuple[float, float]:
    """Return the first and the last second in a table."""
    low, high = pc.min_max(table[_ORDERED[kind]].cast(pa.int64())).as_py().values()
    return (low, high) if kind == "partials" else (low / 1e6, high / 1e6)


def _groups(pieces: list[Segment], apart: float) -> list[list[Segment]]:
    groups: list[list[Segment]] = []
    for piece in pieces:
        if (
            groups
            and _joined([*groups[-1], piece]).rows <= MAX_FILE_ROWS
            and _width([*groups[-1], piece]) <= apart
        ):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _joined(group: list[Segment]) -> Segment:
    lows = [piece.low for piece in group if piece.low is not None]
    highs = [piece.high for piece in group if piece.high is not None]
    rows = sum(piece.rows for piece in group)
    return Segment(group[0].first, group[-1].last, rows, min(lows, default=None), max(highs, default=None))


def _width(group: list[Segment]) -> float:
    whole = _joined(group)
    return 0.0 if whole.low is None or whole.high is None else whole.high - whole.low


def _write(ledger: Ledger, kind: str, group: list[Segment], unite: rollup.Unite) -> Segment:
    whole = _joined(group)
    if len(group) == 1 or not whole.rows:
        return whole
    table = partials.load(kind, [partials.path(ledger, kind, piece) for piece in group if piece.rows])
    if kind == "partials":
        table = rollup.merge(table, unite)
    # Sorted by time, so that a reader can skip most of the file.
    ordered = _ORDERED.get(kind)
    table = table.sort_by(ordered) if ordered else table.group_by(table.schema.names).aggregate([])
    partials.save(table, partials.path(ledger, kind, whole))
    return whole._replace(rows=len(table))


def _tidy(ledger: Ledger, until: int, made: dict[str, list[Segment]]) -> None:
    """Remove what is no longer read: the single files, and what an interrupted attempt left."""
    for kind, listed in made.items():
        kept = {partials.path(ledger, kind, piece) for piece in listed}
        for path in _of(ledger.directory / kind, until):
            if path not in kept:
                path.unlink()
    # The latest counted file has all ranges, so the earlier ones are not needed.
    for path in itertools.chain(*(_of(ledger.directory / kind, until - 1) for kind in ("plans", "counted"))):
        path.unlink()


def _of(directory: Path, until: int) -> Iterator[Path]:
    """List the files of batches up to one."""
    for name in os.listdir(directory) if directory.exists() else ():
        last = name.partition(".")[0].rpartition("-")[2]
        if last.isdigit() and int(last) <= until:
            yield directory / name
