"""The file of a log: its connections, write turns and checkpoints.

SQLite before 3.51.3 can damage a database in WAL mode when connections write and
checkpoint at the same moment. So its automatic checkpoints are off, and everything that
writes, checkpoints, opens or closes does so under one lock file.
"""

import atexit
import contextlib
import ctypes
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

from notifier_kafka.errors import LogUnusable, TransportUnavailable

from . import faults, opening
from .lock import FileLock

WAL_BOUND = 16 * 1024 * 1024
_LOOK_AFTER = 1024 * 1024
_EXIT_WAIT = 2.0


class Settings(NamedTuple):
    """What the file needs to know of the options."""

    synchronous: str
    busy_timeout: float


class TurnMissed(TransportUnavailable):
    """Somebody else wrote for the whole time that the caller could wait."""


class LogFile:
    """One SQLite file. Thread-safe; opened on first use, and anew in a forked child.

    Connections are lent to one thread at a time, so there are as many as there were
    threads at once, and a thread that ends leaves none behind.
    """

    _lock: FileLock | None
    _idle: list[sqlite3.Connection]
    _users: int
    _unchecked: int

    def __init__(self, path: str | None, settings: Callable[[], Settings]) -> None:
        self._path = path and os.path.abspath(path)
        self._directory_of: int | None = None
        self._settings = settings
        self._closed = False
        self._start_afresh()
        _LOGS.add(self)

    @property
    def path(self) -> str:
        return self._path or "(temporary, not made yet)"

    @contextlib.contextmanager
    def reading(self, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend a connection; ``timeout`` bounds the wait when one must be opened."""
        with faults.translated(self.path):
            connection = self._borrow(timeout)
            try:
                yield connection
            finally:
                self._give_back(connection)

    @contextlib.contextmanager
    def writing(
        self, timeout: float | None = None, give_up: Callable[[], bool] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """Lend a connection in a write transaction; commit at the end, roll back on an error."""
        with self.reading(timeout) as connection:
            with self._turn(timeout, give_up), _transaction(connection):
                yield connection
            with self.changed:
                self.changed.notify_all()

    def checkpoint(self, written: int) -> None:
        """Move the WAL into the database when, after ``written`` more bytes, it is too long."""
        self._unchecked += written
        if self._unchecked < _LOOK_AFTER:
            return
        self._unchecked = 0
        with self.reading() as connection:
            if os.stat(f"{self.path}-wal").st_size > WAL_BOUND:
                with self._turn():
                    _truncate_wal(connection)

    def close(self, wait: float | None = None) -> None:
        """Close everything once its users are done, or after ``wait`` seconds without them."""
        with self._state:
            self._closed = True
            done = self._state.wait_for(lambda: self._users == 0, wait)
            idle, self._idle = self._idle, []
        with faults.translated(self.path):
            self._close_connections(idle)
            if done and self._lock:
                self._lock.close()
            if self._directory_of == os.getpid() and self._path:
                shutil.rmtree(os.path.dirname(self._path), ignore_errors=True)

    def abandon_after_fork(self) -> None:
        """Forget the parent's connections: closing them here would drop locks and its WAL."""
        for connection in self._all:
            _leak(connection)
        if self._lock:
            self._lock.abandon_after_fork()
        self._start_afresh()

    def _start_afresh(self) -> None:
        self.changed = threading.Condition()
        """Notified after each write of this process."""
        self._state = threading.Condition()
        self._lock = None
        self._idle = []
        self._all: set[sqlite3.Connection] = set()
        self._users = 0
        self._unchecked = 0

    def _borrow(self, timeout: float | None) -> sqlite3.Connection:
        with self._state:
            if self._closed:
                raise LogUnusable(f"log {self.path}: its driver is closed; open a new one")
            self._users += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect(timeout)
        except BaseException:
            self._count_out()
            raise

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._state:
            keep = not self._closed
            if keep:
                self._idle.append(connection)
        if not keep:
            self._close_connections([connection])
        self._count_out()

    def _count_out(self) -> None:
        with self._state:
            self._users -= 1
            self._state.notify_all()

    def _connect(self, timeout: float | None) -> sqlite3.Connection:
        with self._state:
            if self._path is None:
                self._path = os.path.join(tempfile.mkdtemp(prefix="notifier-kafka-"), "log.db")
                self._directory_of = os.getpid()
            if self._lock is None:
                opening.make_directory(self._path)
                self._lock = FileLock(f"{self._path}-lock")
        with self._turn(timeout):
            connection = opening.connect(self._path, self._settings().synchronous)
        self._all.add(connection)
        return connection

    @contextlib.contextmanager
    def _turn(
        self, timeout: float | None = None, give_up: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        assert self._lock  # noqa: S101 - made with the first connection
        lock = self._lock
        longest = self._settings().busy_timeout
        wait = longest if timeout is None else min(timeout, longest)
        if not lock.acquire(wait, give_up):
            raise TurnMissed(
                f"log {self.path}: locked by another process for {wait:g} s; "
                f"see who holds {self.path}-lock, or raise busy_timeout"
            )
        try:
            yield
        finally:
            lock.release()

    def _close_connections(self, connections: list[sqlite3.Connection]) -> None:
        if not connections:
            return
        try:
            # The last connection to close a file checkpoints it.
            with self._turn():
                for connection in connections:
                    connection.close()
        except TurnMissed:
            # The end of the process will free them without a checkpoint.
            for connection in connections:
                _leak(connection)
        self._all.difference_update(connections)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    if connection.in_transaction:
        # Left by an error so bad that even the roll-back failed.
        connection.execute("ROLLBACK")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors SQLite has rolled back by itself.
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _truncate_wal(connection: sqlite3.Connection) -> None:
    # Without waiting for readers: then it moves what it can, and the next time is soon.
    connection.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(opening.FOREIGN_WAIT * 1000)}").fetchall()


def _leak(connection: sqlite3.Connection) -> None:
    """Keep a connection from ever being freed, because freeing it closes it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_LOGS: "weakref.WeakSet[LogFile]" = weakref.WeakSet()


def _abandon_all() -> None:
    for log in list(_LOGS):
        log.abandon_after_fork()


def _close_all() -> None:
    for log in list(_LOGS):
        with contextlib.suppress(TransportUnavailable, LogUnusable):
            log.close(_EXIT_WAIT)


os.register_at_fork(after_in_child=_abandon_all)
# Before the interpreter frees what is left in any order, and without the lock.
atexit.register(_close_all)
