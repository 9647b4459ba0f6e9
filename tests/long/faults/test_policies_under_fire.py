"""The policies of a listener under SIGKILL: workers, at most once, and each effect once."""

import functools
import pathlib
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable

import pytest

from faults import checker
from faults.harness import Case
from faults.processes import BATCH_RECORDS, SOAK_FACTOR, Bus, wait_until
from faults.workload import publisher
from notifier_kafka import Notifier
from tests.shared.checkout import ROOT

COUNT = 1_500 * SOAK_FACTOR
KILLS = 3
QUICK_SECONDS = 0.001  # seconds for each, so that a fault hits a listener at work
EXAMPLE = ROOT / "docs" / "examples" / "ledger.py"


@pytest.fixture
def case(either_bus: Bus, open_case: Callable[[Bus], Case]) -> Case:
    return open_case(either_bus)


@pytest.mark.parametrize("batch", [False, True], ids=["one-by-one", "batches"])
def test_workers_killed_in_the_middle_of_a_batch(
    kill_a_member: Callable[..., checker.Verdict], batch: bool
) -> None:
    verdict = kill_a_member(COUNT, work_seconds=QUICK_SECONDS, batch=batch, options={"listener.workers": 4})
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == COUNT


def test_workers_stopped_in_the_middle_of_a_batch(case: Case) -> None:
    options = {"listener.workers": 4}
    case.publish("publisher", COUNT).wait_for_exit()
    first = case.listen("first", "main", work_seconds=QUICK_SECONDS, options=options)
    first.wait_for("handled", COUNT // 4)
    first.terminate()
    first.wait_for_exit()
    assert first.count("handled") < COUNT, "too late to prove anything"
    case.listen("second", "main", options=options)
    verdict = case.finish({"main": BATCH_RECORDS})
    assert verdict.is_valid, verdict


def test_at_most_once_a_kill_repeats_nothing(case: Case) -> None:
    options = {"listener.delivery": "at-most-once"}
    case.publish("publisher", COUNT).wait_for_exit()
    victim = case.listen("victim", "main", work_seconds=QUICK_SECONDS, options=options)
    victim.wait_for("handled", COUNT // 4)
    victim.kill()
    assert victim.count("handled") < COUNT, "too late to prove anything"
    heir = case.listen("heir", "main", options=options)
    wait_until(lambda: heir.count("handled") and case.has_caught_up({"main": 0}), "the heir")
    verdict = case.judge({"main": 0})
    # Lost is only what the victim had committed and not handled.
    assert set(verdict.examples) <= {"lost"}, verdict
    assert verdict.lost <= BATCH_RECORDS, verdict


class Book:
    """The example's account book, and the process that keeps it."""

    def __init__(self, bus: Bus, directory: pathlib.Path) -> None:
        self._url = bus.url
        self._path = directory / "book.db"
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(EXAMPLE), self._url, str(self._path)])

    def end(self, sign: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(sign)
        return self._process.wait(60)

    def payments(self) -> list[str]:
        book = sqlite3.connect(self._path, timeout=30)
        try:
            return [row[0] for row in book.execute("SELECT id FROM payment ORDER BY rowid")]
        except sqlite3.OperationalError:  # not there yet
            return []
        finally:
            book.close()

    def has(self, count: int) -> bool:
        return len(self.payments()) >= count


def test_each_payment_is_booked_once_whatever_is_killed(either_bus: Bus, tmp_path: pathlib.Path) -> None:
    """The example of the documentation, killed again and again with a batch under way."""
    run = uuid.uuid4().hex[:8]
    transport = publisher.connect(either_bus.url, {})
    sender = Notifier(transport, "shop", "messagingv2", topics=["payments"], key="payload:id")
    ids = [f"{run}-{number}" for number in range(COUNT)]
    sender.prepare(wait=True).send_many({}, "info", [("paid", {"id": one, "amount": 1}) for one in ids])
    transport.cleanup()
    book = Book(either_bus, tmp_path)
    try:
        for kill in range(1, KILLS + 1):
            book.keep()
            goal = COUNT * kill // (KILLS + 1)
            wait_until(functools.partial(book.has, goal), f"{goal} payments")
            book.end(signal.SIGKILL)
        assert len(book.payments()) < COUNT, "too late to prove anything"
        book.keep()
        wait_until(lambda: set(ids) <= set(book.payments()), "all payments")
        assert book.end(signal.SIGTERM) == 0
    finally:
        book.end(signal.SIGKILL)
    assert Counter(book.payments()) == Counter(ids)
