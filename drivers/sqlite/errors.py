"""What SQLite and the file system report, as this package's errors. The only such place."""

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

_Fault = tuple[type[MessagingException], str]

_REFUSED: _Fault = (LogUnusable, "SQLite cannot work with it; is another program changing it?")
_READ_ONLY: _Fault = (LogUnusable, "it cannot be written; check the owner and mode of it and its directory")

# A full disk is retriable although the log cannot be used meanwhile: publishers then hold
# their records until there is room, and lose none.
_FULL: _Fault = (TransportUnavailable, "the disk is full; make room, then what waits is written")
_LOCKED: _Fault = (TransportUnavailable, "another program keeps it locked; end it, or raise busy_timeout")
_DISK: _Fault = (
    TransportUnavailable,
    "reading or writing failed; check the space, quota and health of the disk",
)
_SHORT: _Fault = (TransportUnavailable, "the system is short of memory or file handles")

# By primary result code. What is not here is no result of a call but a fault of ours or of
# somebody who changed the tables.
_SQLITE: dict[int, _Fault] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _DISK,
    # Missing files and rights were looked for before SQLite was asked to open it.
    sqlite3.SQLITE_CANTOPEN: _SHORT,
    sqlite3.SQLITE_NOMEM: _SHORT,
    sqlite3.SQLITE_INTERRUPT: _SHORT,
    sqlite3.SQLITE_CORRUPT: (
        LogUnusable,
        "it is damaged; restore it from a copy, or move it and its -wal and -shm away to start anew",
    ),
    sqlite3.SQLITE_NOTADB: (LogUnusable, "it is no SQLite database; name another file, or move it away"),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_AUTH: _READ_ONLY,
    sqlite3.SQLITE_TOOBIG: (DeliveryFailed, "a record is larger than SQLite can hold; send less"),
}

_SYSTEM: dict[int, _Fault] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EIO: _DISK,
    errno.EMFILE: _SHORT,
    errno.ENFILE: _SHORT,
    errno.ENOMEM: _SHORT,
    errno.EAGAIN: _SHORT,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
}


def translate(error: sqlite3.Error | OSError, path: str) -> MessagingException:
    """Say what happened to the log at ``path`` and what to do."""
    if isinstance(error, OSError):
        kind, advice = _SYSTEM.get(error.errno or 0, (LogUnusable, "name another file"))
        detail = error.strerror or str(error)
    else:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        kind, advice = _SQLITE.get(code & 0xFF, _REFUSED)
        detail = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    return kind(f"log {path}: {advice} ({detail})")


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Let only this package's errors out of a block that works on the log at ``path``."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error
