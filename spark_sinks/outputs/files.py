"""Sinks that are a directory: parquet, csv and json, with a subdirectory for each batch.

For each metric and window, the rows of the latest batch are valid; ``table`` returns only those.
A batch is written completely into its own directory and then recorded in ``_batches``.
"""

import contextlib
import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from oslo_config import cfg
from pyarrow import parquet

from notifier_kafka.cli.output import text
from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs import rows
from spark_sinks.state import safe_files
from spark_sinks.state.ledger import CHECKPOINT_DIRECTORY

BATCHES_DIRECTORY = "_batches"
BATCH_PREFIX = "batch="


class FileSink:
    """A directory of rows in some format."""

    format: ClassVar[str]

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:  # noqa: ARG002 - every sink is given it
        if not place:
            raise ConfigurationError(f"output {self.format}: needs a directory, as {self.format}:DIRECTORY")
        self.directory = Path(place).absolute()

    def last(self, job: str) -> int:
        done = written_batches(self.directory)
        if not done and self.directory.is_dir() and (foreign := _foreign_names(self.directory)):
            raise ConfigurationError(
                f"output {self.directory} is not empty and not an output of this program: "
                f"it holds {foreign[0]}"
            )
        for mark in done.values():
            if mark["job"] != job:
                raise ConfigurationError(
                    f"output {self.directory} belongs to another job; name another directory"
                )
            # Batches of another format say nothing about this one.
            if (other := mark.get("format", self.format)) != self.format:
                raise ConfigurationError(
                    f"output {self.directory} holds {other}, not {self.format}; name another directory"
                )
        return max(done, default=0)

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        # One file: there are few rows.
        target = part_file(self.directory, batch, self.format)
        target.parent.mkdir(parents=True, exist_ok=True)
        written = target.with_name(f".{target.name}.part")
        self.write_rows(found, written)
        move_into_place(written, target)
        noted = {"job": job, "format": self.format, "rows": len(found)}
        _save(self.directory / BATCHES_DIRECTORY / f"{batch:08}", noted)

    def write_rows(self, found: pa.Table, file: Path) -> None:
        """Write rows into a new file of the format."""
        raise NotImplementedError


class ParquetSink(FileSink):
    """``parquet:DIRECTORY``."""

    format = "parquet"

    def write_rows(self, found: pa.Table, file: Path) -> None:
        with open(file, "wb", opener=safe_files.open_new) as written:
            parquet.write_table(found, written)


class JsonSink(FileSink):
    """``json:DIRECTORY``: one object in each line."""

    format = "json"

    def write_rows(self, found: pa.Table, file: Path) -> None:
        with open(file, "w", encoding="utf-8", opener=safe_files.open_new) as lines:
            lines.writelines(json.dumps(rows.as_json(row)) + "\n" for row in found.to_pylist())


class CsvSink(FileSink):
    """``csv:DIRECTORY``: with a header. The group is a JSON object, and no text is a formula."""

    format = "csv"

    def write_rows(self, found: pa.Table, file: Path) -> None:
        with open(file, "w", encoding="utf-8", newline="", opener=safe_files.open_new) as lines:
            writer = csv.DictWriter(lines, rows.ROW.names)
            writer.writeheader()
            writer.writerows(
                {name: _escape_formula(cell) for name, cell in row.items()}
                for row in rows.as_flat_rows(found)
            )


def part_file(directory: Path, batch: int, suffix: str) -> Path:
    """Return the path of the rows of a batch."""
    return directory / f"{BATCH_PREFIX}{batch:08}" / f"part-0.{suffix}"


def move_into_place(written: Path, target: Path) -> None:
    """Rename a file atomically, also in case of a power cut."""
    _sync(written)
    os.replace(written, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def written_batches(directory: Path) -> dict[int, dict[str, Any]]:
    """Return the batches that are complete, with the record of each."""
    found = {}
    for path in (directory / BATCHES_DIRECTORY).glob("*") if (directory / BATCHES_DIRECTORY).is_dir() else ():
        # A concurrent compaction removes records of batches.
        with contextlib.suppress(FileNotFoundError):
            if path.name.isdigit():
                found[int(path.name)] = json.loads(path.read_bytes())
    return found


def read(directory: Path, kind: str = "parquet") -> list[dict[str, Any]]:
    """Return the rows of ``table`` as a list."""
    found: list[dict[str, Any]] = table(directory, kind).to_pylist()
    return found


def table(directory: Path, kind: str = "parquet") -> pa.Table:
    """Return the valid rows of a directory: for each metric and window those of the latest batch."""
    done = written_batches(directory)
    for other in {batch.get("format", kind) for batch in done.values()} - {kind}:
        raise ConfigurationError(f"output {directory} holds {other}, not {kind}")
    try:
        return latest_rows(directory, sorted(done), kind)
    except FileNotFoundError as error:
        if written_batches(directory) == done:
            raise ConfigurationError(f"output {directory}: {error.filename or error} is not there") from error
        # A compaction ran meanwhile.
        return table(directory, kind)


def latest_rows(directory: Path, batches: Sequence[int], kind: str = "parquet") -> pa.Table:
    """Return the valid rows of batches: for each metric and window those of the latest batch."""
    tables = [FORMATS[kind](part_file(directory, batch, kind)) for batch in batches]
    whole = pa.concat_tables([rows.ROW.empty_table(), *tables])
    units = whole.select(list(rows.WINDOW_KEY))
    numbers = [
        pa.repeat(pa.scalar(batch, pa.int64()), len(t)) for batch, t in zip(batches, tables, strict=True)
    ]
    units = units.append_column("batch", pa.chunked_array(numbers, pa.int64()))
    newest = units.group_by(list(rows.WINDOW_KEY)).aggregate([("batch", "max")])
    units = units.append_column("row", pa.array(range(len(units)), pa.int64()))
    keys = [*rows.WINDOW_KEY, "batch"]
    counting = units.join(newest, keys, [*rows.WINDOW_KEY, "batch_max"], join_type="left semi")
    # Rows of the same metric and time lie together, for readers.
    order = [(name, "ascending") for name in ("metric", "window_start", "row")]
    return whole.take(counting.sort_by(order)["row"])


def _of_parquet(file: Path) -> pa.Table:
    return parquet.ParquetFile(file).read()


def _of_json(file: Path) -> pa.Table:
    with file.open(encoding="utf-8") as lines:
        return rows.from_json(map(json.loads, lines))


def _of_csv(file: Path) -> pa.Table:
    with file.open(encoding="utf-8", newline="") as lines:
        found = csv.DictReader(lines)
        plain = ({name: _unescape_formula(cell) for name, cell in row.items()} for row in found)
        return rows.from_json(
            row | {"group": json.loads(row["group"]), "value": float(row["value"])} for row in plain
        )


def _escape_formula(cell: Any) -> Any:
    """Put an apostrophe before a formula, also before one that has apostrophes: so it can be undone."""
    return f"'{cell}" if isinstance(cell, str) and _begins_a_formula(cell.lstrip("'")) else cell


def _unescape_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _begins_a_formula(cell.lstrip("'")) else cell


def _begins_a_formula(cell: str) -> bool:
    return bool(text.csv_cell(cell) != cell)


FORMATS = {"parquet": _of_parquet, "csv": _of_csv, "json": _of_json}
"""The functions that read a file of each format."""


def _foreign_names(directory: Path) -> list[str]:
    # An interrupted first batch and the job's checkpoint belong to this program.
    return sorted(
        name
        for name in os.listdir(directory)
        if not name.startswith((BATCH_PREFIX, BATCHES_DIRECTORY, CHECKPOINT_DIRECTORY))
    )


def _save(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.part")
    with open(written, "w", encoding="utf-8", opener=safe_files.open_new) as file:
        json.dump(value, file)
    move_into_place(written, path)
