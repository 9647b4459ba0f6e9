"""Counts, and a log that stays readable."""

import logging
import os
import signal
import threading
import time

import pytest

from notifier_kafka.stats import counters

LOG = logging.getLogger("counters-under-test")


def test_a_burst_of_losses_is_two_lines_that_add_up(caplog: pytest.LogCaptureFixture) -> None:
    made = counters.Counters(LOG)
    for number in range(1_000):
        made.lose("OutboxFull", f"number {number}")
    made.lose("DeliveryFailed", "too large")
    made.report()
    assert made.counts() == {"lost.OutboxFull": 1_000, "lost.DeliveryFailed": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "Notifications were lost: 1 OutboxFull; the last: number 0",
        "Notifications were lost: 999 OutboxFull, 1 DeliveryFailed; the last: too large",
    ]


def test_no_loss_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    made = counters.Counters(LOG)
    made.add("handled", 3)
    made.report()
    assert made.counts() == {"handled": 3}
    assert caplog.records == []


def test_a_loss_soon_after_a_line_is_told_without_another(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "LOG_INTERVAL_SECONDS", 1.0)
    made = counters.Counters(LOG)
    for number in range(3):
        made.lose("OutboxFull", f"number {number}")
    deadline = time.monotonic() + 30
    while len(caplog.records) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == [
        "Notifications were lost: 1 OutboxFull; the last: number 0",
        "Notifications were lost: 2 OutboxFull; the last: number 2",
    ]


def test_a_child_waits_for_no_thread_of_its_parent(caplog: pytest.LogCaptureFixture) -> None:
    made = counters.Counters(LOG)
    made.lose("OutboxFull", "first")
    made.lose("OutboxFull", "the parent's to tell")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with made._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if not (child := os.fork()):
        # In the child: no exception may come back into pytest.
        caplog.clear()
        made.lose("SpoolFull", "the child's")
        made.report()
        said = [record.getMessage() for record in caplog.records]
        os._exit(said != ["Notifications were lost: 1 SpoolFull; the last: the child's"])
    done.set()
    thread.join()
    _, status = until_ended(child)
    assert status == 0


def until_ended(child: int) -> tuple[int, int]:
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)
        time.sleep(0.01)
    return ended


def test_a_report_leaves_no_thread_behind() -> None:
    made = counters.Counters(LOG)
    made.lose("OutboxFull", "first")
    made.lose("OutboxFull", "second")
    later = made._later
    assert later is not None
    made.report()
    later.join(30)
    assert not later.is_alive()
