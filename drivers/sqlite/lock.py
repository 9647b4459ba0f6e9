"""The lock beside a log: one writer at a time among processes and threads, in fair turns."""

import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable

from . import opening

# Bytes of the lock file. Who waits for the log holds the turn, and who wants it again
# queues behind: otherwise the one that just wrote is always quicker than those asleep.
_LOG, _TURN = 0, 1

SLICE = 0.01
"""Seconds that a process goes on writing before it queues again."""

_FIRST_SLEEP = 0.0001
_LONGEST_SLEEP = 0.001


class FileLock:
    """An advisory lock on a file of its own.

    Open-file-description locks: the kernel frees them when the last process that has the
    description ends, and unlike POSIX locks they do not vanish when some other part of the
    process closes the same file. Taken by asking again and again, because the call
    that waits knows no timeout.
    """

    _fd: int | None
    _place: opening.Place | None

    def __init__(self, path: str) -> None:
        self._path = path
        self._start_afresh()

    def acquire(self, timeout: float, give_up: Callable[[], bool] | None = None) -> bool:
        """Take the lock within ``timeout`` seconds; stop early once ``give_up()`` is true."""
        deadline = time.monotonic() + timeout
        if not self._mutex.acquire(timeout=max(0.0, timeout)):
            return False
        taken = False
        try:
            taken = self._take(deadline, give_up)
        finally:
            if not taken:
                self._mutex.release()
        return taken

    def release(self) -> None:
        self._lock(fcntl.F_UNLCK, _LOG)
        self._mutex.release()

    def close(self) -> None:
        """Close the lock file. The lock must not be held."""
        with self._mutex:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def abandon_after_fork(self) -> None:
        """Let go of the parent's description, which would keep its lock after its death."""
        if self._fd is not None:
            os.close(self._fd)
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._mutex = threading.Lock()
        self._fd = None
        self._place = None
        self._slice_ends = 0.0

    def _take(self, deadline: float, give_up: Callable[[], bool] | None) -> bool:
        # Deleted, it would be locked by those only who opened it before.
        if self._fd is not None and opening.place(self._path) != self._place:
            os.close(self._fd)
            self._fd = None
            self._slice_ends = 0.0
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._place = opening.place(self._path)
        if time.monotonic() < self._slice_ends and self._lock(fcntl.F_WRLCK, _LOG):
            return True
        my_turn = False
        sleep = _FIRST_SLEEP
        try:
            while True:
                my_turn = my_turn or self._lock(fcntl.F_WRLCK, _TURN)
                if my_turn and self._lock(fcntl.F_WRLCK, _LOG):
                    self._slice_ends = time.monotonic() + SLICE
                    return True
                if time.monotonic() >= deadline or (give_up and give_up()):
                    return False
                time.sleep(sleep)
                sleep = min(sleep * 2, _LONGEST_SLEEP)
        finally:
            if my_turn:
                self._lock(fcntl.F_UNLCK, _TURN)

    def _lock(self, kind: int, byte: int) -> bool:
        assert self._fd is not None  # noqa: S101
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))
        except (BlockingIOError, PermissionError):
            # The standard lets either say that somebody else has it.
            return False
        return True
