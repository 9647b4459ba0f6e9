"""Opening the file of a log: create it, check that it is ours and writable, set up the connection."""

import contextlib
import os
import pathlib
import sqlite3

from notifier_kafka.errors import LogUnusable

APPLICATION_ID = 0x6E6B6C67  # "nklg"
SCHEMA_VERSION = 2

# How long SQLite itself waits for programs that do not use our lock. Nothing can interrupt that wait.
FOREIGN_TIMEOUT_SECONDS = 1.0

FileIdentity = tuple[int, int]
"""Device and inode: they tell files apart, whatever their names."""


def make_directory(path: str) -> None:
    """Create the missing directories above the log at ``path``, for the owner alone."""
    for directory in reversed(pathlib.Path(path).parents):
        # One by one, because makedirs gives the mode to the last one only.
        if not directory.is_dir():
            directory.mkdir(mode=0o700, exist_ok=True)


def identify(path: str) -> FileIdentity | None:
    """Return which file is at ``path`` now; None when there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def connect(path: str, synchronous: str) -> sqlite3.Connection:
    """Open the log at ``path``; create it when it is missing. The caller holds the log's lock."""
    _check_access(path)
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=FOREIGN_TIMEOUT_SECONDS
    )
    try:
        _set_up(connection, path, synchronous)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_access(path: str) -> None:
    # An existing file is never opened here: closing it would drop every POSIX lock that this
    # process has on it, also those of SQLite's other connections.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        # These belong to a log that was deleted or moved away while in use. Other processes
        # may still write to them, so the new log must not use them.
        for suffix in ("-wal", "-shm"):
            pathlib.Path(path + suffix).unlink(missing_ok=True)
    if not os.path.isfile(path):
        raise LogUnusable(f"log {path}: it is not a regular file; name another path")
    for checked in (path, os.path.dirname(path)):
        if not os.access(checked, os.R_OK | os.W_OK):
            raise LogUnusable(
                f"log {path}: {checked} cannot be read and written by this user; "
                "check its owner and mode, or name another path"
            )


def _set_up(connection: sqlite3.Connection, path: str, synchronous: str) -> None:
    # Check the identity first: a foreign file must not be changed.
    is_new = _check_identity(connection, path)
    if is_new:
        # The file may have existed, empty. -wal and -shm take their mode from it. A file of
        # another user keeps the mode that its owner chose.
        with contextlib.suppress(PermissionError):
            os.chmod(path, 0o600)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise LogUnusable(
            f"log {path}: its file system cannot share memory between processes (journal mode {mode}); "
            "name a path on a local disk"
        )
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA foreign_keys = ON")
    if is_new:
        schema = pathlib.Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        connection.executescript(
            f"BEGIN IMMEDIATE; {schema} PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
        )


def _check_identity(connection: sqlite3.Connection, path: str) -> bool:
    """Refuse a file that is not a log of a version that we know; return whether it is empty."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID:
        if version != SCHEMA_VERSION:
            advice = (
                "upgrade notifier-kafka"
                if version > SCHEMA_VERSION
                else "empty it with the version that wrote it, then move it away"
            )
            raise LogUnusable(
                f"log {path}: its schema is version {version}, this program knows {SCHEMA_VERSION}; {advice}"
            )
        return False
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise LogUnusable(f"log {path}: it is the database of another program; name another path")
    return True
