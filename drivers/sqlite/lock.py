"""The lock beside a log: one writer at a time among processes and threads, in fair turns."""

import fcntl
import os
import struct
import threading
import time
from collections.abc import Callable

from notifier_kafka.contract.backoff import Backoff

from . import opening

# Bytes of the lock file. The first in the queue locks one byte while it waits for the log; a
# process that just wrote queues too. Otherwise it would always be faster than those that sleep.
_LOG_BYTE, _QUEUE_BYTE = 0, 1

TURN_SECONDS = 0.01
"""How long a process may lock again and again before it has to queue."""

_FIRST_PAUSE_SECONDS = 0.0001
_LONGEST_PAUSE_SECONDS = 0.001


class FileLock:
    """An advisory lock on a file of its own.

    It uses open-file-description locks. The kernel frees them when the last process that has the
    description ends, and unlike POSIX locks they stay when another part of the process
    closes the same file. It is polled, because the system call that waits has no timeout.
    """

    _fd: int | None
    _identity: opening.FileIdentity | None

    def __init__(self, path: str) -> None:
        self._path = path
        self._start_afresh()

    def acquire(self, timeout: float, give_up: Callable[[], bool] | None = None) -> bool:
        """Take the lock within ``timeout`` seconds; stop early when ``give_up()`` is true."""
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
        self._lock(fcntl.F_UNLCK, _LOG_BYTE)
        self._mutex.release()

    def close(self) -> None:
        """Close the lock file. The lock must not be held."""
        with self._mutex:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def abandon_after_fork(self) -> None:
        """Close, in a child process, the description that would keep the lock after the parent's end."""
        if self._fd is not None:
            os.close(self._fd)
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._mutex = threading.Lock()
        self._fd = None
        self._identity = None
        self._turn_ends = 0.0

    def _take(self, deadline: float, give_up: Callable[[], bool] | None) -> bool:
        # A deleted lock file is seen only by the processes that opened it before.
        if self._fd is not None and opening.identify(self._path) != self._identity:
            os.close(self._fd)
            self._fd = None
            self._turn_ends = 0.0
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._identity = opening.identify(self._path)
        if time.monotonic() < self._turn_ends and self._lock(fcntl.F_WRLCK, _LOG_BYTE):
            return True
        is_first = False
        backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        try:
            while True:
                is_first = is_first or self._lock(fcntl.F_WRLCK, _QUEUE_BYTE)
                if is_first and self._lock(fcntl.F_WRLCK, _LOG_BYTE):
                    self._turn_ends = time.monotonic() + TURN_SECONDS
                    return True
                if time.monotonic() >= deadline or (give_up and give_up()):
                    return False
                time.sleep(backoff.pause())
        finally:
            if is_first:
                self._lock(fcntl.F_UNLCK, _QUEUE_BYTE)

    def _lock(self, kind: int, byte: int) -> bool:
        assert self._fd is not None  # noqa: S101
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))
        except (BlockingIOError, PermissionError):
            # By the standard either error can mean that another process has it.
            return False
        return True
