"""``jdbc:sqlite:FILE``: rows in a table, each batch in one transaction."""

import contextlib
import sqlite3
from collections.abc import Iterator

import pyarrow as pa

from notifier_kafka.errors import ConfigurationError, LogUnusable, MessagingException, TransportUnavailable
from spark_sinks.outputs import rows

TABLES = """
CREATE TABLE IF NOT EXISTS metric_rows (
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    window_start TEXT NOT NULL,
    window_end TEXT NOT NULL,
    "group" TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (metric, window_start, window_end, "group")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metric_batches (job TEXT NOT NULL, batch INTEGER NOT NULL, PRIMARY KEY (job));
"""


class SqliteSink:
    """A table ``metric_rows``. Times are text in UTC, the group is a JSON object."""

    def __init__(self, file: str) -> None:
        self.file = file

    def last(self, job: str) -> int:
        with self._transaction() as connection:
            for statement in TABLES.split(";"):
                connection.execute(statement)
            self._check(connection)
            found = connection.execute("SELECT job, batch FROM metric_batches").fetchall()
        for other, _ in found:
            if other != job:
                raise ConfigurationError(f"output {self.file} belongs to another job; name another file")
        return int(found[0][1]) if found else 0

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        listed = rows.as_flat_rows(found)
        units = {tuple(row[name] for name in rows.WINDOW_KEY) for row in listed}
        with self._transaction() as connection:
            connection.executemany(_DELETE, units)
            connection.executemany(_INSERT, listed)
            connection.execute("INSERT OR REPLACE INTO metric_batches VALUES (?, ?)", (job, batch))

    def _check(self, connection: sqlite3.Connection) -> None:
        found = [name for _, name, *_ in connection.execute("PRAGMA table_info(metric_rows)")]
        if found != rows.ROW.names:
            raise ConfigurationError(
                f"output {self.file}: the table metric_rows has the columns {', '.join(found)}, "
                f"not {', '.join(rows.ROW.names)}; name another file"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> MessagingException:
        text = f"output {self.file}: {error}"
        return TransportUnavailable(text) if "locked" in str(error) else LogUnusable(text)


_DELETE = "DELETE FROM metric_rows WHERE metric = ? AND window_start = ? AND window_end = ?"
_INSERT = (
    'INSERT INTO metric_rows (metric, unit, window_start, window_end, "group", value) '
    "VALUES (:metric, :unit, :window_start, :window_end, :group, :value)"
)
