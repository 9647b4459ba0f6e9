"""Forks, at any moment: both sides keep what they acknowledge."""

import contextlib
import os
import pathlib
import signal
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable

import pytest

from notifier_kafka.errors import LogUnusable
from notifier_kafka_drivers.sqlite import forking
from tests.unit.drivers.sqlite.sqlite_rig import (
    LONG,
    await_true,
    child,
    line,
    numbers,
    open_driver,
    publish,
    read_all,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "log.db"


def succeeds_in_child(work: Callable[[], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("order", ["first", "last"])
def test_a_busy_process_forks_publishers(path: pathlib.Path, order: str) -> None:
    for _ in range(2):
        with child("write_endlessly", path) as other, child("prefork", path, order) as parent:
            published = int(line(parent))
            assert parent.wait(LONG) == 0
            other.send_signal(signal.SIGTERM)
            assert other.stdout
            told = [int(text) for text in other.stdout.read().split("\n")[:-1]]
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = defaultdict(list)
        with open_driver(path) as driver:
            for delivery in read_all(driver, "t"):
                found[delivery.record.key].append(delivery)
            driver.admin().delete_topic("t")
        assert numbers(found.pop(b"parent")) == list(range(published))
        others = numbers(found.pop(b"k"))
        assert others == list(range(len(others)))
        assert others[: len(told)] == told
        assert told
        assert {key: numbers(each) for key, each in found.items()} == {
            b"child %d" % number: list(range(100)) for number in range(10)
        }


def test_a_child_keeps_its_log_when_the_parent_closes_it(path: pathlib.Path) -> None:
    reading, writing = os.pipe()
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            status = 1
            try:
                publish(driver, "t", [2])
                os.read(reading, 1)
                publish(driver, "t", [3])
                status = 0
            finally:
                os._exit(status)
        with open_driver(path) as other:
            await_true(lambda: len(read_all(other, "t")) == 2)
    # Nobody but the child has it open now.
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(reading)
    with open_driver(path) as driver:
        assert sorted(numbers(read_all(driver, "t"))) == [1, 2, 3]


def test_a_fork_does_not_wait_for_a_poll_to_end(path: pathlib.Path) -> None:
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        subscription = driver.subscribe(["t"], "g", "latest")
        forked: list[bool] = []

        def fork() -> None:
            forked.append(succeeds_in_child(lambda: publish(driver, "t", [2])))

        timer = threading.Timer(0.5, fork)
        timer.start()
        # It lets go of its connection for the fork, and goes on behind it.
        assert numbers(subscription.poll(1, LONG)) == [2]
        timer.join()
        assert forked == [True]


def test_a_child_refuses_a_log_that_stayed_in_use(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "TIMEOUT_SECONDS", 0.1)
    used, done = threading.Event(), threading.Event()

    def use() -> None:
        with driver._log.reading():
            used.set()
            done.wait(LONG)

    def refused() -> None:
        for one in (driver, again):
            with pytest.raises(LogUnusable, match="forked"):
                one.spans(["t"])
        # Any other log is as good as ever.
        publish(free, "t", [3])

    with open_driver(path) as driver, open_driver(path) as again, open_driver(f"{path}2") as free:
        publish(free, "t", [1])
        publish(driver, "t", [1])
        thread = threading.Thread(target=use)
        thread.start()
        assert used.wait(LONG)
        assert succeeds_in_child(refused)
        done.set()
        thread.join()
        publish(driver, "t", [2])
        assert sorted(numbers(read_all(again, "t"))) == [1, 2]
        assert sorted(numbers(read_all(free, "t"))) == [1, 3]


def test_a_child_forked_in_the_middle_of_a_write_leaves_it_to_the_parent(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "TIMEOUT_SECONDS", 0.1)
    with open_driver(path) as driver:
        publish(driver, "t", [1])
        pid = -1
        told = ""
        try:
            with driver._log.writing() as connection:
                connection.execute("UPDATE partitions SET stamp = 4000000000000000")
                pid = os.fork()
        except LogUnusable as error:
            told = str(error)
        finally:
            if pid == 0:
                os._exit("forked while using it" not in told)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        publish(driver, "t", [2])
        assert [int(delivery.timestamp) for delivery in read_all(driver, "t")][1:] == [4_000_000_000]
