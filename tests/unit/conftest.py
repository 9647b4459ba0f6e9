"""Faults that several tests need."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from notifier_kafka_drivers.sqlite.lock import FileLock

Locked = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture
def locked() -> Locked:
    """Hold the lock of a log, as another process in the middle of a long write would."""

    @contextmanager
    def hold(log: Path) -> Iterator[None]:
        lock = FileLock(f"{log}-lock")
        assert lock.acquire(30.0)
        try:
            yield
        finally:
            lock.release()
            lock.close()

    return hold
