"""The file of a log: its connections, its lock and its checkpoints.

SQLite before 3.51.3 can damage a database in WAL mode when connections write and
checkpoint at the same moment. So automatic checkpoints are off, and we write,
checkpoint, open and close only while we hold one lock file.
"""

import atexit
import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

from notifier_kafka.contract import after_fork
from notifier_kafka.errors import LogUnusable, TransportUnavailable

from . import connections, errors, forking, opening
from .lock import FileLock

LOG = logging.getLogger(__name__)

WAL_LIMIT_BYTES = 16 * 1024 * 1024
_CHECK_BYTES = 1024 * 1024
_EXIT_TIMEOUT_SECONDS = 2.0


class FileSettings(NamedTuple):
    """The options that concern the file."""

    synchronous: str
    busy_timeout: float


class LockTimeout(TransportUnavailable):
    """Other processes held the lock for as long as the caller could wait."""


class LogFile:
    """One SQLite file. Thread-safe. Opened on first use, and again after a fork or a move of the file.

    A connection is lent to one thread at a time, so there are as many as there were threads
    at the same time. A thread that ends leaves no connection behind.
    """

    _lock: FileLock | None
    _idle: list[sqlite3.Connection]
    _users: int
    _forks: int
    _unchecked: int

    def __init__(self, path: str | None, settings: Callable[[], FileSettings]) -> None:
        self._path = path and os.path.abspath(path)
        self._directory_of: int | None = None
        self._settings = settings
        self._closed = False
        self.times_moved = 0
        """How often another file was found at the path."""
        self._reset()
        _LOGS.add(self)
        forking.join(self)

    @property
    def path(self) -> str:
        return self._path or "(temporary, not made yet)"

    @property
    def is_fork_waiting(self) -> bool:
        """Whether a fork waits for connections: a caller that only waits should return its own."""
        return self._forks > 0

    @contextlib.contextmanager
    def reading(self, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend a connection; ``timeout`` limits how long opening a new one may wait."""
        with errors.translating(self.path):
            connection = self._borrow(timeout)
            try:
                self.check_file(connection)
                yield connection
            finally:
                self._give_back(connection)

    @contextlib.contextmanager
    def writing(
        self, timeout: float | None = None, give_up: Callable[[], bool] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """Lend a connection in a write transaction; commit at the end, roll back after an error."""
        with self.reading(timeout) as connection, self.transaction(connection, timeout, give_up):
            yield connection

    @contextlib.contextmanager
    def transaction(
        self,
        connection: sqlite3.Connection,
        timeout: float | None = None,
        give_up: Callable[[], bool] | None = None,
    ) -> Iterator[None]:
        """Run a block that has a connection already in a write transaction."""
        with self._locked(timeout, give_up), connections.transaction(connection):
            yield
            # Under the lock and as late as possible: in a moved file the records would not be durable.
            self.check_file(connection)
        with self.changed:
            self.changed.notify_all()

    def check_file(self, connection: sqlite3.Connection) -> None:
        """Raise when the connection's file is no longer at the path."""
        known = self._identities.get(connection)
        if known is not None and known == opening.identify(self.path):
            return
        if known is None:
            raise LogUnusable(
                f"log {self.path}: this process was forked while using it; continue in the parent"
            )
        with self._state:
            if connection not in self._moved:
                self._moved.update(one for one, identity in self._identities.items() if identity == known)
                self.times_moved += 1
        raise TransportUnavailable(
            f"log {self.path}: the file was deleted or moved away while in use; "
            "put it back, or continue with the new one that the next call creates"
        )

    def checkpoint(self, written: int | None = None, give_up: Callable[[], bool] | None = None) -> None:
        """Move the WAL into the database when, after ``written`` more bytes, it is too long.

        None means that the caller does not count them.
        """
        self._unchecked += _CHECK_BYTES if written is None else written
        if self._unchecked < _CHECK_BYTES:
            return
        self._unchecked = 0
        with self.reading() as connection:
            if os.stat(f"{self.path}-wal").st_size > WAL_LIMIT_BYTES:
                with self._locked(give_up=give_up):
                    connections.truncate_wal(connection)

    def close(self, wait: float | None = None) -> None:
        """Close everything when no connection is in use any more, or after ``wait`` seconds."""
        with self._state:
            self._closed = True
            done = self._state.wait_for(lambda: self._users == 0, wait)
            idle, self._idle = self._idle, []
            self._users += 1
        try:
            with errors.translating(self.path):
                self._close_connections(idle)
                if done and self._lock:
                    self._lock.close()
                if self._directory_of == os.getpid() and self._path:
                    shutil.rmtree(os.path.dirname(self._path), ignore_errors=True)
        finally:
            self._end_use()

    def pause(self) -> None:
        with self._state:
            self._forks += 1
        with self.changed:
            self.changed.notify_all()

    def close_idle(self, wait: float) -> None:
        deadline = time.monotonic() + wait
        with self._state:
            if not self._state.wait_for(lambda: self._users == 0, wait):
                return
            idle, self._idle = self._idle, []
        # A fork that did not wait would make the log unusable in the child.
        if idle and self._lock and self._lock.acquire(max(0.0, deadline - time.monotonic())):
            try:
                while idle:
                    self._close_one(idle[-1])
                    idle.pop()
            except (sqlite3.Error, OSError) as error:
                LOG.warning("Forking: %s", errors.translate(error, self.path))
            finally:
                self._lock.release()
        self._idle = idle

    def resume(self) -> None:
        with self._state:
            self._forks -= 1
            self._state.notify_all()

    def start_afresh(self) -> set[opening.FileIdentity]:
        left = set(self._identities.values())
        for connection in self._identities:
            # Closing it here would drop the parent's WAL.
            after_fork.never_free(connection)
        if self._lock:
            self._lock.abandon_after_fork()
        self._reset()
        return left

    def _reset(self) -> None:
        self.changed = threading.Condition()
        """Notified after each write of this process, and before a fork."""
        self._state = threading.Condition()
        self._lock = None
        self._idle = []
        self._identities: dict[sqlite3.Connection, opening.FileIdentity] = {}
        self._moved: set[sqlite3.Connection] = set()
        self._users = 0
        self._forks = 0
        self._unchecked = 0

    def _borrow(self, timeout: float | None) -> sqlite3.Connection:
        with self._state:
            if not self._state.wait_for(lambda: not self._forks, timeout):
                raise LockTimeout(
                    f"log {self.path}: a fork of this process took longer than {timeout:g} s; try again"
                )
            if self._closed:
                raise LogUnusable(f"log {self.path}: its driver is closed; open a new one")
            self._users += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect(timeout)
        except BaseException:
            self._end_use()
            raise

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection not in self._identities:
            # This process was forked while it used the connection, which is the parent's.
            return
        try:
            with self._state:
                self._idle.append(connection)
                stale = [one for one in self._idle if self._closed or one in self._moved]
                self._idle = [one for one in self._idle if one not in stale]
            self._close_connections(stale)
        finally:
            self._end_use()

    def _end_use(self) -> None:
        with self._state:
            self._users -= 1
            self._state.notify_all()

    def _connect(self, timeout: float | None) -> sqlite3.Connection:
        with self._state:
            if self._path is None:
                self._path = os.path.join(tempfile.mkdtemp(prefix="notifier-kafka-"), "log.db")
                self._directory_of = os.getpid()
            opening.make_directory(self._path)
            if self._lock is None:
                self._lock = FileLock(f"{self._path}-lock")
        if forking.is_unusable(opening.identify(self._path)):
            raise LogUnusable(
                f"log {self._path}: it was in use while this process was forked, so SQLite's locks "
                "are wrong in this process; fork while no thread uses the log, or start a new program"
            )
        with self._locked(timeout):
            connection = opening.connect(self._path, self._settings().synchronous)
            identity = opening.identify(self._path)
        with self._state:
            # No file has the identity (0, 0), so the next check finds that this one is gone.
            self._identities[connection] = identity or (0, 0)
        return connection

    @contextlib.contextmanager
    def _locked(
        self, timeout: float | None = None, give_up: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        assert self._lock  # noqa: S101 - made with the first connection
        lock = self._lock
        longest = self._settings().busy_timeout
        wait = longest if timeout is None else min(timeout, longest)
        if not lock.acquire(wait, give_up):
            raise LockTimeout(
                f"log {self.path}: locked by another process for {wait:g} s; "
                f"see which process holds {self.path}-lock, or raise busy_timeout"
            )
        try:
            yield
        finally:
            # In a child process that was forked inside the block, the lock is a new one and not held.
            if self._lock is lock:
                lock.release()

    def _close_connections(self, unwanted: list[sqlite3.Connection]) -> None:
        if not unwanted:
            return
        try:
            # The last connection to a file checkpoints it when it is closed.
            with self._locked():
                for connection in unwanted:
                    self._close_one(connection)
        except LockTimeout:
            # The end of the process closes them without a checkpoint.
            for connection in unwanted:
                after_fork.never_free(connection)
                forking.note_left_open(self._identities[connection])

    def _close_one(self, connection: sqlite3.Connection) -> None:
        if connection in self._moved:
            # SQLite does not checkpoint a file that was moved.
            with contextlib.suppress(sqlite3.Error):
                connections.truncate_wal(connection)
        connection.close()
        with self._state:
            self._moved.discard(connection)
            del self._identities[connection]


_LOGS: "weakref.WeakSet[LogFile]" = weakref.WeakSet()


def _close_all() -> None:
    for log in list(_LOGS):
        with contextlib.suppress(TransportUnavailable, LogUnusable):
            log.close(_EXIT_TIMEOUT_SECONDS)


# Before the interpreter frees connections in any order and without the lock.
atexit.register(_close_all)
