"""``jdbc:postgresql://...``: rows in a table, each batch in one transaction.

The client library is pg8000, which is small and pure Python. Many rows go as one JSON text: so no
text of a notification becomes part of SQL, and a batch takes few round trips.
"""

import contextlib
import getpass
import json
import os
import ssl
from collections.abc import Callable, Iterator
from typing import Any
from urllib import parse

import pyarrow as pa

from notifier_kafka.errors import (
    ConfigurationError,
    DriverLoadFailure,
    LogUnusable,
    MessagingException,
    TransportUnavailable,
)
from spark_sinks.outputs import rows

TIMEOUT_SECONDS = 10.0
"""How long to wait for a server that does not answer."""

STATEMENT_CHARACTERS = 16 * 1024 * 1024
"""The most characters of JSON in one statement, unless a single row has more. PostgreSQL accepts at
most 256 MiB."""

# The group is text, because PostgreSQL's JSON type refuses some valid JSON. The index has only its
# hash, because an index entry is limited to a few kilobytes. It is not md5, for which senders can
# make collisions. An index needs immutable functions, and convert_to is not one.
TABLES = (
    """CREATE TABLE IF NOT EXISTS metric_rows (
        metric text NOT NULL,
        unit text NOT NULL,
        window_start timestamptz NOT NULL,
        window_end timestamptz NOT NULL,
        "group" text NOT NULL,
        value double precision NOT NULL
    )""",
    """CREATE UNIQUE INDEX IF NOT EXISTS metric_rows_unique ON metric_rows
       (metric, window_start, window_end, sha256(decode(replace("group", '\\', '\\\\'), 'escape')))""",
    # The index of an earlier release, with md5.
    "DROP INDEX IF EXISTS metric_rows_key",
    "CREATE TABLE IF NOT EXISTS metric_batches (job text PRIMARY KEY, batch bigint NOT NULL)",
)
_DELETE = """
    DELETE FROM metric_rows USING (
        SELECT DISTINCT metric, window_start, window_end FROM jsonb_to_recordset(CAST(%s AS jsonb))
        AS found (metric text, window_start timestamptz, window_end timestamptz)
    ) AS new
    WHERE metric_rows.metric = new.metric AND metric_rows.window_start = new.window_start
    AND metric_rows.window_end = new.window_end"""
_INSERT = """
    INSERT INTO metric_rows
    SELECT metric, unit, window_start, window_end, "group", CAST(value AS double precision)
    FROM jsonb_to_recordset(CAST(%s AS jsonb)) AS found (
        metric text, unit text, window_start timestamptz, window_end timestamptz, "group" text, value text
    )"""
_MARK = (
    """INSERT INTO metric_batches VALUES (%s, %s) ON CONFLICT (job) DO UPDATE SET batch = excluded.batch"""
)
_COLUMNS = """SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = 'metric_rows' ORDER BY ordinal_position"""
_SELECT = """
    SELECT metric, to_char(window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    to_char(window_end AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), "group", value, unit
    FROM metric_rows"""

# Errors of configuration: password, user, database, schema, permission.
_CONFIGURATION_STATES = ("28P01", "28000", "3D000", "3F000", "42501")


class PostgresqlSink:
    """A table ``metric_rows``. The group is a JSON object."""

    def __init__(self, url: str) -> None:
        self._arguments = connection_arguments(url)
        self.name = f"{self._arguments['host']}/{self._arguments['database']}"

    def last(self, job: str) -> int:
        with self._transaction() as cursor:
            # Without the lock, one of two processes that create the table at once would fail.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('notifier-kafka metric_rows'))")
            cursor.execute(TABLES[0])
            self._check(cursor)
            for statement in TABLES[1:]:
                cursor.execute(statement)
            cursor.execute("SELECT job, batch FROM metric_batches")
            found = cursor.fetchall()
        if any(other != job for other, _ in found):
            raise ConfigurationError(f"output {self.name} belongs to another job; name another database")
        return int(found[0][1]) if found else 0

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        texts = batch_texts(found)
        with self._transaction() as cursor:
            # Delete first in all texts: the rows of a window may be in two of them.
            for statement in (_DELETE, _INSERT):
                for part in texts:
                    cursor.execute(statement, (part,))
            cursor.execute(_MARK, (job, batch))

    def read(self) -> list[tuple[Any, ...]]:
        """Return all rows: metric, start and end of the window, group, value and unit."""
        with self._transaction() as cursor:
            cursor.execute(_SELECT)
            return [tuple(row) for row in cursor.fetchall()]

    def _check(self, cursor: Any) -> None:
        cursor.execute(_COLUMNS)
        columns = [name for (name,) in cursor.fetchall()]
        if columns != rows.ROW.names:
            raise ConfigurationError(
                f"output {self.name}: the table metric_rows has the columns {', '.join(columns)}, "
                f"not {', '.join(rows.ROW.names)}; name another database"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        driver = _driver()
        try:
            with contextlib.closing(driver.connect(**self._arguments)) as connection:
                yield connection.cursor()
                connection.commit()
        except (driver.Error, OSError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> MessagingException:
        details = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        text = f"output {self.name}: {details.get('M') or error}".splitlines()[0]
        if details.get("C") in _CONFIGURATION_STATES:
            return ConfigurationError(text)
        return LogUnusable(text) if details else TransportUnavailable(text)


def batch_texts(found: pa.Table) -> list[str]:
    """Return the rows as JSON texts of limited size."""
    made: list[list[str]] = [[]]
    size = 0
    for row in rows.as_flat_rows(found):
        # The value is text, because JSON has no infinity.
        text = json.dumps(row | {"value": repr(row["value"])})
        size += len(text) + 1
        if made[-1] and size > STATEMENT_CHARACTERS:
            made.append([])
            size = len(text) + 1
        made[-1].append(text)
    return [f"[{','.join(part)}]" for part in made]


def connection_arguments(url: str) -> dict[str, Any]:
    """Parse ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full``.

    Without a password, the environment variable PGPASSWORD is used.
    """
    parts, port = _split(url)
    query = dict(parse.parse_qsl(parts.query))
    mode = query.pop("sslmode", "prefer")
    user = query.pop("user", None) or parse.unquote(parts.username or "") or getpass.getuser()
    password = query.pop("password", None) or parse.unquote(parts.password or "")
    database = parse.unquote(parts.path[1:])
    if not parts.hostname or not database or query or mode not in _MODES:
        raise ConfigurationError(
            f"output jdbc:postgresql://{parts.hostname or ''}: use postgresql://USER:PASSWORD@HOST:PORT/"
            f"DATABASE with the parameters user, password and sslmode ({', '.join(_MODES)})"
        )
    return {
        "host": parts.hostname,
        "port": port,
        "user": user,
        "password": password or os.environ.get("PGPASSWORD"),
        "database": database,
        "timeout": TIMEOUT_SECONDS,
        "ssl_context": _MODES[mode](),
    }


def _split(url: str) -> tuple[parse.SplitResult, int]:
    """Split a URL, and refuse one whose password is not percent-encoded."""
    try:
        parts = parse.urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        # Python's error would quote the password.
        parts, port = None, 0
    if parts is None or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise ConfigurationError(
            "output jdbc:postgresql: is not a valid URL; in a user, password or database "
            "write @ / ? # and : as %40 %2F %3F %23 and %3A"
        )
    return parts, port


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# For pg8000, None means TLS if the server offers it.
_MODES: dict[str, Callable[[], ssl.SSLContext | bool | None]] = {
    "disable": lambda: False,
    "prefer": lambda: None,
    "require": _unverified,
    "verify-full": ssl.create_default_context,
}


def _driver() -> Any:
    try:
        import pg8000.dbapi as driver
    except ModuleNotFoundError as error:
        how = "install it with: pip install 'notifier-kafka[postgresql]'"
        raise DriverLoadFailure("jdbc:postgresql", f"{error}; {how}") from error
    return driver
