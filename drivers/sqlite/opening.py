"""Opening the file of a log: is it there, is it ours, can it be written, how it is set up."""

import contextlib
import os
import pathlib
import sqlite3

from notifier_kafka.errors import LogUnusable

APPLICATION_ID = 0x6E6B6C67  # "nklg"
SCHEMA_VERSION = 2

# How long SQLite itself waits, where nothing can interrupt it, for programs that do not
# know our lock.
FOREIGN_WAIT = 1.0

Place = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


def make_directory(path: str) -> None:
    """Make the directories above the log at ``path`` that are missing, for the owner alone."""
    for directory in reversed(pathlib.Path(path).parents):
        # Each by itself: makedirs would give its mode to the last one only.
        if not directory.is_dir():
            directory.mkdir(mode=0o700, exist_ok=True)


def place(path: str) -> Place | None:
    """Say which file is at ``path`` now, if any."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def connect(path: str, synchronous: str) -> sqlite3.Connection:
    """Open the log at ``path``, made when missing. The caller holds the log's lock."""
    _check_access(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=FOREIGN_WAIT)
    try:
        _set_up(connection, path, synchronous)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_access(path: str) -> None:
    # Never opened here when it exists: closing a file drops every POSIX lock that this
    # process has on it, those of SQLite's other connections too.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        # Left by a log that was deleted or moved away while in use. Others may still
        # write to them, and must not share them with the new one.
        for suffix in ("-wal", "-shm"):
            pathlib.Path(path + suffix).unlink(missing_ok=True)
    if not os.path.isfile(path):
        raise LogUnusable(f"log {path}: it is no regular file; name another path")
    for place in (path, os.path.dirname(path)):
        if not os.access(place, os.R_OK | os.W_OK):
            raise LogUnusable(
                f"log {path}: {place} cannot be read and written by this user; "
                "check its owner and mode, or name another path"
            )


def _set_up(connection: sqlite3.Connection, path: str, synchronous: str) -> None:
    # Who it belongs to comes first: nothing may change in a foreign file.
    is_new = _check_identity(connection, path)
    if is_new:
        # An empty file that somebody made; -wal and -shm take their modes from it. That of
        # another user stays as its owner wants it.
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
    """Refuse what is not a log of ours that we can read; tell whether it is still empty."""
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
        raise LogUnusable(f"log {path}: it is a database of another program; name another path")
    return True
