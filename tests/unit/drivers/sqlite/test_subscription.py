"""A subscription of the SQLite driver when the thread that renews its lease starts."""

import pathlib
import threading

import pytest

from notifier_kafka.errors import MessagingException
from tests.unit.drivers.sqlite.sqlite_rig import numbers, open_driver, publish

START = threading.Thread.start


def test_a_signal_handler_that_closes_it_while_the_thread_starts_leaves_the_group(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_driver(tmp_path / "log.db") as driver:
        publish(driver, "t", range(5))
        subscription = driver.subscribe(["t"], "g", "earliest")

        def close_and_start(thread: threading.Thread) -> None:
            # Where the interpreter would run the handler: start() waits for the new thread.
            if thread.name == "notifier-kafka-lease":
                subscription.close()
            START(thread)

        monkeypatch.setattr(threading.Thread, "start", close_and_start)
        subscription.poll(10, 0.0)
        assert driver.admin().describe_group("g").members == {}


def test_a_thread_that_the_system_refuses_is_asked_for_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with open_driver(tmp_path / "log.db") as driver:
        publish(driver, "t", range(5))
        subscription = driver.subscribe(["t"], "g", "earliest")
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(
                MessagingException, match="no thread to renew the lease: can't start new thread"
            ):
                subscription.poll(10, 0.0)
        assert numbers(subscription.poll(10, 1.0)) == [0, 1, 2, 3, 4]
        assert any(thread.name == "notifier-kafka-lease" for thread in threading.enumerate())
