"""The lock of an SQLite log, in the hands of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from notifier_kafka_drivers.sqlite.lock import FileLock


@contextmanager
def locked(log: Path) -> Iterator[None]:
    """Hold the lock of a log, as another process in the middle of a long write would."""
    lock = FileLock(f"{log}-lock")
    assert lock.acquire(30.0)
    try:
        yield
    finally:
        lock.release()
        lock.close()
