"""Reads the metric rows of an output, without Spark."""

import contextlib
import datetime
import fnmatch
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from notifier_kafka.contract.driver import Start
from notifier_kafka.errors import ConfigurationError
from spark_sinks.outputs import files, rows, secret_masking

Row = tuple[str, str, str, str, float, str]
"""Metric, start and end of the window in UTC, the group as JSON, value, unit."""


def read(output: str, pattern: str, since: Start | None, until: Start | None) -> list[Row]:
    """Return the rows whose metric matches a pattern and whose window overlaps a time range."""
    kind, _, place = output.partition(":")
    if kind in files.FORMATS:
        found: Iterable[Row] = _directory(kind, Path(place))
    elif kind == "jdbc" and place.startswith("sqlite:"):
        found = _sqlite(place.removeprefix("sqlite:"))
    elif kind == "jdbc" and place.startswith("postgresql:"):
        from spark_sinks.outputs.postgresql import PostgresqlSink

        found = PostgresqlSink(place).read()
    else:
        known = "parquet:DIR, csv:DIR, json:DIR, jdbc:sqlite:FILE and jdbc:postgresql://HOST/DATABASE"
        raise ConfigurationError(f"output {secret_masking.output(output)}: only {known} can be read")
    after, before = (_iso(at) if isinstance(at, float) else None for at in (since, until))
    return sorted(
        row
        for row in found
        if fnmatch.fnmatchcase(row[0], pattern)
        and (after is None or row[2] > after)
        and (before is None or row[1] < before)
    )


def _directory(kind: str, directory: Path) -> Iterator[Row]:
    if not directory.is_dir():
        raise ConfigurationError(f"output {kind}:{directory}: no such directory")
    for row in map(rows.as_json, files.read(directory, kind)):
        times = row["window_start"], row["window_end"]
        yield row["metric"], *times, json.dumps(row["group"], sort_keys=True), row["value"], row["unit"]


def _sqlite(file: str) -> Iterator[Row]:
    # By a URI SQLite can be told not to create the file. It escapes ?, # and % in the name.
    uri = f"{Path(file).absolute().as_uri()}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            columns = 'metric, window_start, window_end, "group", value, unit'
            yield from connection.execute(f"SELECT {columns} FROM metric_rows")  # noqa: S608 - no input  # nosec B608
    except sqlite3.Error as error:
        raise ConfigurationError(f"output {file}: {error}") from error


def _iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
