"""``jdbc:postgresql://...``: rows in a table, each batch in one transaction.

By pg8000, which is pure Python and small. Rows go many at once, as one JSON text: so nothing
of a notification is ever a part of SQL, and a batch is few journeys to the server.
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
"""Seconds until a server that does not answer is given up."""

STATEMENT_CHARACTERS = 16 * 1024 * 1024
"""Characters of JSON in one statement, but for a row that has more: 256 MiB are the most that
PostgreSQL takes."""

# The group is text, for JSON in it may hold what PostgreSQL's own type refuses; and only its
# hash is in the index, which takes no entry above a few kilobytes. No md5, of which senders can
# make two alike. An index wants what depends on nothing but the text, which convert_to is not.
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
    # That of an earlier release, by md5.
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

# What the configuration is to blame for: password, user, database, schema, right.
_ASKED_WRONG = ("28P01", "28000", "3D000", "3F000", "42501")


class PostgresqlSink:
    """A table ``metric_rows``; the group is a JSON object."""

    def __init__(self, url: str) -> None:
        self._arguments = connection_arguments(url)
        self.name = f"{self._arguments['host']}/{self._arguments['database']}"

    def last(self, job: str) -> int:
        with self._transaction() as cursor:
            # Of two that make the same table at once, one would fail.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('notifier-kafka metric_rows'))")
            cursor.execute(TABLES[0])
            self._check(cursor)
            for statement in TABLES[1:]:
                cursor.execute(statement)
            cursor.execute("SELECT job, batch FROM metric_batches")
            found = cursor.fetchall()
        if any(other != job for other, _ in found):
            raise ConfigurationError(f"output {self.name} is of another job; name another database")
        return int(found[0][1]) if found else 0

    def write(self, job: str, batch: int, found: pa.Table) -> None:
        texts = batch_texts(found)
        with self._transaction() as cursor:
            # All that was there first: the rows of a window may be in two parts.
            for statement in (_DELETE, _INSERT):
                for part in texts:
                    cursor.execute(statement, (part,))
            cursor.execute(_MARK, (job, batch))

    def read(self) -> list[tuple[Any, ...]]:
        """Return all rows: metric, begin and end of the window, group, value and unit."""
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
        if details.get("C") in _ASKED_WRONG:
            return ConfigurationError(text)
        return LogUnusable(text) if details else TransportUnavailable(text)


def batch_texts(found: pa.Table) -> list[str]:
    """Spell rows as JSON, in as many texts as it takes."""
    made: list[list[str]] = [[]]
    size = 0
    for row in rows.as_flat_rows(found):
        # As text, because JSON knows no infinity.
        text = json.dumps(row | {"value": repr(row["value"])})
        size += len(text) + 1
        if made[-1] and size > STATEMENT_CHARACTERS:
            made.append([])
            size = len(text) + 1
        made[-1].append(text)
    return [f"[{','.join(part)}]" for part in made]


def connection_arguments(url: str) -> dict[str, Any]:
    """Read ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full``.

    Without a password that of the environment's PGPASSWORD counts.
    """
    parts, port = _split(url)
    query = dict(parse.parse_qsl(parts.query))
    mode = query.pop("sslmode", "prefer")
    user = query.pop("user", None) or parse.unquote(parts.username or "") or getpass.getuser()
    password = query.pop("password", None) or parse.unquote(parts.password or "")
    database = parse.unquote(parts.path[1:])
    if not parts.hostname or not database or query or mode not in _MODES:
        raise ConfigurationError(
            f"output jdbc:postgresql://{parts.hostname or ''}: known is postgresql://USER:PASSWORD@HOST:PORT/"
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
    """Take a URL apart, whose password must not be taken for a part of something else."""
    try:
        parts = parse.urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        # Python's reason quotes the password.
        parts, port = None, 0
    if parts is None or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise ConfigurationError(
            "output jdbc:postgresql: is no URL that can be understood; in a user, password or database "
            "write @ / ? # and : as %40 %2F %3F %23 and %3A"
        )
    return parts, port


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# To pg8000 None is to use TLS where the server does.
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
