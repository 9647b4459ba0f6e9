"""Translates the errors of SQLite and the file system into those of this package. Nothing else does."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator

from notifier_kafka.errors import (
    DeliveryFailed,
    LogUnusable,
    MessagingException,
    TransportUnavailable,
)

_Meaning = tuple[type[MessagingException], str]

_REFUSED: _Meaning = (LogUnusable, "SQLite cannot work with it; is another program changing it?")
_READ_ONLY: _Meaning = (LogUnusable, "it cannot be written; check the owner and mode of it and its directory")

# A full disk is retriable: publishers then keep their records until there is room, and lose none.
_FULL: _Meaning = (TransportUnavailable, "the disk is full; make room, then waiting records are written")
_LOCKED: _Meaning = (TransportUnavailable, "another program keeps it locked; end it, or raise busy_timeout")
_DISK: _Meaning = (
    TransportUnavailable,
    "reading or writing failed; check the space, quota and health of the disk",
)
_NO_RESOURCES: _Meaning = (TransportUnavailable, "the system has too little memory or too few file handles")

# By primary result code. A code that is not here is a bug of ours, or somebody changed the tables.
_SQLITE: dict[int, _Meaning] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _DISK,
    # Missing files and permissions were checked before SQLite opens it.
    sqlite3.SQLITE_CANTOPEN: _NO_RESOURCES,
    sqlite3.SQLITE_NOMEM: _NO_RESOURCES,
    sqlite3.SQLITE_INTERRUPT: _NO_RESOURCES,
    sqlite3.SQLITE_CORRUPT: (
        LogUnusable,
        "it is damaged; restore it from a copy, or move it and its -wal and -shm away for an empty one",
    ),
    sqlite3.SQLITE_NOTADB: (LogUnusable, "it is not an SQLite database; name another file, or move it away"),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_AUTH: _READ_ONLY,
    sqlite3.SQLITE_TOOBIG: (DeliveryFailed, "a record is larger than SQLite can hold; send less"),
}

_SYSTEM: dict[int, _Meaning] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EIO: _DISK,
    errno.EMFILE: _NO_RESOURCES,
    errno.ENFILE: _NO_RESOURCES,
    errno.ENOMEM: _NO_RESOURCES,
    errno.EAGAIN: _NO_RESOURCES,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
}


def translate(error: sqlite3.Error | OSError, path: str) -> MessagingException:
    """Return an error that says what happened to the log at ``path`` and what to do."""
    if isinstance(error, OSError):
        kind, advice = _SYSTEM.get(error.errno or 0, (LogUnusable, "name another file"))
        detail = error.strerror or str(error)
    else:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        kind, advice = _SQLITE.get(code & 0xFF, _REFUSED)
        detail = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    return kind(f"log {path}: {advice} ({detail})")


@contextlib.contextmanager
def translating(path: str) -> Iterator[None]:
    """Translate the errors of a block that works on the log at ``path``."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error
