"""The lock beside a log, between threads, drivers and processes."""

import contextlib
import os
import pathlib
import signal
import threading
import time

import pytest

from notifier_kafka_drivers.sqlite.lock import FileLock
from tests.unit.drivers.sqlite.sqlite_rig import LONG, await_true, child, line


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "lock")


def test_one_at_a_time_within_a_process(path: str) -> None:
    one, other = FileLock(path), FileLock(path)
    assert one.acquire(0)
    for lock in (one, other):
        assert not lock.acquire(0)
        assert not lock.acquire(0.01)
    one.release()
    assert other.acquire(0)
    other.release()
    one.close()
    other.close()


def test_threads_take_turns(path: str) -> None:
    lock = FileLock(path)
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            assert lock.acquire(LONG)
            inside += 1
            most = max(most, inside)
            time.sleep(0)
            inside -= 1
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lock.close()
    assert most == 1


def test_waiting_ends_when_asked(path: str) -> None:
    holder, waiter = FileLock(path), FileLock(path)
    assert holder.acquire(0)
    assert not waiter.acquire(3600, lambda: True)
    holder.release()
    assert waiter.acquire(0)
    waiter.release()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_a_process_frees_its_lock(tmp_path: pathlib.Path, end: signal.Signals) -> None:
    with child("hold", tmp_path / "log.db") as holder:
        assert line(holder) == "held"
        lock = FileLock(str(tmp_path / "log.db-lock"))
        assert not lock.acquire(0)
        holder.send_signal(end)
        assert lock.acquire(LONG)
        lock.release()
        lock.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_keep_its_parents_lock(tmp_path: pathlib.Path) -> None:
    # The one that forks holds the turn to write through a driver; its child outlives it.
    with child("fork_and_hold", tmp_path / "log.db") as holder:
        grandchild = int(line(holder))
        holder.send_signal(signal.SIGKILL)
        lock = FileLock(str(tmp_path / "log.db-lock"))
        try:
            assert lock.acquire(LONG)
            os.kill(grandchild, 0)
        finally:
            os.kill(grandchild, signal.SIGKILL)
        lock.release()
        lock.close()


def test_six_busy_processes_all_get_their_turns(tmp_path: pathlib.Path) -> None:
    notes = [tmp_path / f"w{i}" for i in range(6)]
    with contextlib.ExitStack() as stack:
        for i, note in enumerate(notes):
            stack.enter_context(child("storm_write", tmp_path / "log.db", f"w{i}", 1_000_000, note))
        # While the quickest writes without a pause, the slowest gets on as well.
        await_true(lambda: all(note.exists() and note.stat().st_size for note in notes))
        before = [read(note) for note in notes]
        await_true(lambda: max(read(n) - b for n, b in zip(notes, before, strict=True)) > 6_000)
        gained = [read(note) - b for note, b in zip(notes, before, strict=True)]
    assert min(gained) > max(gained) / 100


def read(note: pathlib.Path) -> int:
    return int.from_bytes(note.read_bytes(), "little")
