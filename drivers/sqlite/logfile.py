"""The file of a log: its connections, write turns and checkpoints.

SQLite before 3.51.3 can damage a database in WAL mode when connections write and
checkpoint at the same moment. So its automatic checkpoints are off, and everything that
writes, checkpoints, opens or closes does so under one lock file.
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

from notifier_kafka.errors import LogUnusable, TransportUnavailable

from . import connections, errors, forking, opening
from .lock import FileLock

LOG = logging.getLogger(__name__)

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
    """One SQLite file. Thread-safe; opened on first use, and anew after a fork or a move.

    Connections are lent to one thread at a time, so there are as many as there were
    threads at once, and a thread that ends leaves none behind.
    """

    _lock: FileLock | None
    _idle: list[sqlite3.Connection]
    _users: int
    _forks: int
    _unchecked: int

    def __init__(self, path: str | None, settings: Callable[[], Settings]) -> None:
        self._path = path and os.path.abspath(path)
        self._directory_of: int | None = None
        self._settings = settings
        self._closed = False
        self.moves = 0
        """How often the file was found to be another one than before."""
        self._begin()
        _LOGS.add(self)
        forking.join(self)

    @property
    def path(self) -> str:
        return self._path or "(temporary, not made yet)"

    @property
    def wanted_back(self) -> bool:
        """Whether who only waits with a connection should return it: somebody forks."""
        return self._forks > 0

    @contextlib.contextmanager
    def reading(self, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend a connection; ``timeout`` bounds the wait when one must be opened."""
        with errors.translated(self.path):
            connection = self._borrow(timeout)
            try:
                self.check_place(connection)
                yield connection
            finally:
                self._give_back(connection)

    @contextlib.contextmanager
    def writing(
        self, timeout: float | None = None, give_up: Callable[[], bool] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """Lend a connection in a write transaction; commit at the end, roll back on an error."""
        with self.reading(timeout) as connection, self.changing(connection, timeout, give_up):
            yield connection

    @contextlib.contextmanager
    def changing(
        self,
        connection: sqlite3.Connection,
        timeout: float | None = None,
        give_up: Callable[[], bool] | None = None,
    ) -> Iterator[None]:
        """Make a write transaction of a block that has a connection already."""
        with self._turn(timeout, give_up), connections.transaction(connection):
            yield
            # In the turn, and as late as can be: nobody may be told that it is durable.
            self.check_place(connection)
        with self.changed:
            self.changed.notify_all()

    def check_place(self, connection: sqlite3.Connection) -> None:
        """Refuse to work on a file that is no longer at the path."""
        known = self._places.get(connection)
        if known is not None and known == opening.place(self.path):
            return
        if known is None:
            raise LogUnusable(
                f"log {self.path}: this process was forked in the middle of using it; go on in the parent"
            )
        with self._state:
            if connection not in self._moved:
                self._moved.update(one for one, place in self._places.items() if place == known)
                self.moves += 1
        raise TransportUnavailable(
            f"log {self.path}: the file was deleted or moved away while in use; "
            "put it back, or go on with a new one that the next call makes"
        )

    def checkpoint(self, written: int | None = None, give_up: Callable[[], bool] | None = None) -> None:
        """Move the WAL into the database when, after ``written`` more bytes, it is too long.

        None is for who does not count them.
        """
        self._unchecked += _LOOK_AFTER if written is None else written
        if self._unchecked < _LOOK_AFTER:
            return
        self._unchecked = 0
        with self.reading() as connection:
            if os.stat(f"{self.path}-wal").st_size > WAL_BOUND:
                with self._turn(give_up=give_up):
                    connections.truncate_wal(connection)

    def close(self, wait: float | None = None) -> None:
        """Close everything once its users are done, or after ``wait`` seconds without them."""
        with self._state:
            self._closed = True
            done = self._state.wait_for(lambda: self._users == 0, wait)
            idle, self._idle = self._idle, []
            self._users += 1
        try:
            with errors.translated(self.path):
                self._close_connections(idle)
                if done and self._lock:
                    self._lock.close()
                if self._directory_of == os.getpid() and self._path:
                    shutil.rmtree(os.path.dirname(self._path), ignore_errors=True)
        finally:
            self._count_out()

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
        # busy_timeout bounds what a call waits; a fork that hurries would cost the child its log.
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

    def start_afresh(self) -> set[opening.Place]:
        left = set(self._places.values())
        for connection in self._places:
            # Closing it here would drop the parent's WAL.
            connections.leak(connection)
        if self._lock:
            self._lock.abandon_after_fork()
        self._begin()
        return left

    def _begin(self) -> None:
        self.changed = threading.Condition()
        """Notified after each write of this process, and when somebody forks."""
        self._state = threading.Condition()
        self._lock = None
        self._idle = []
        self._places: dict[sqlite3.Connection, opening.Place] = {}
        self._moved: set[sqlite3.Connection] = set()
        self._users = 0
        self._forks = 0
        self._unchecked = 0

    def _borrow(self, timeout: float | None) -> sqlite3.Connection:
        with self._state:
            if not self._state.wait_for(lambda: not self._forks, timeout):
                raise TurnMissed(f"log {self.path}: this process forked for {timeout:g} s; try again")
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
        if connection not in self._places:
            # The parent's, of a child that was forked in the middle of using it.
            return
        try:
            with self._state:
                self._idle.append(connection)
                stale = [one for one in self._idle if self._closed or one in self._moved]
                self._idle = [one for one in self._idle if one not in stale]
            self._close_connections(stale)
        finally:
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
            opening.make_directory(self._path)
            if self._lock is None:
                self._lock = FileLock(f"{self._path}-lock")
        if forking.is_spoilt(opening.place(self._path)):
            raise LogUnusable(
                f"log {self._path}: it stayed in use while this process was forked, so that SQLite's locks "
                "are wrong in here; fork when less is going on, or start the child as a new program"
            )
        with self._turn(timeout):
            connection = opening.connect(self._path, self._settings().synchronous)
            place = opening.place(self._path)
        with self._state:
            # No place at all is none that a file can have: the next check tells.
            self._places[connection] = place or (0, 0)
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
            # In a child that was forked in here, the lock is another one, and not taken.
            if self._lock is lock:
                lock.release()

    def _close_connections(self, unwanted: list[sqlite3.Connection]) -> None:
        if not unwanted:
            return
        try:
            # The last connection to close a file checkpoints it.
            with self._turn():
                for connection in unwanted:
                    self._close_one(connection)
        except TurnMissed:
            # The end of the process will free them without a checkpoint.
            for connection in unwanted:
                connections.leak(connection)
                forking.note_leaked(self._places[connection])

    def _close_one(self, connection: sqlite3.Connection) -> None:
        if connection in self._moved:
            # SQLite does not do so for a file that it finds moved.
            with contextlib.suppress(sqlite3.Error):
                connections.truncate_wal(connection)
        connection.close()
        with self._state:
            self._moved.discard(connection)
            del self._places[connection]


_LOGS: "weakref.WeakSet[LogFile]" = weakref.WeakSet()


def _close_all() -> None:
    for log in list(_LOGS):
        with contextlib.suppress(TransportUnavailable, LogUnusable):
            log.close(_EXIT_WAIT)


# Before the interpreter frees what is left in any order, and without the lock.
atexit.register(_close_all)
