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

from faults.harness import BATCH, LOAD, Bus, Scene, until
from faults.workload import publisher
from notifier_kafka.publishing import notifier
from tests.shared.checkout import ROOT

COUNT = 1_500 * LOAD
KILLS = 3
QUICK = 0.001  # seconds for each, so that a fault hits a listener at work
EXAMPLE = ROOT / "docs" / "examples" / "ledger.py"


@pytest.fixture
def scene(either_bus: Bus, open_scene: Callable[[Bus], Scene]) -> Scene:
    return open_scene(either_bus)


@pytest.mark.parametrize("batch", [False, True], ids=["one-by-one", "batches"])
def test_workers_killed_in_the_middle_of_a_batch(scene: Scene, batch: bool) -> None:
    options = {"listener.workers": 4}
    victim = scene.listen("victim", "crew", work=QUICK, batch=batch, options=options)
    publisher = scene.publish("publisher", COUNT)
    victim.await_count("handled", COUNT // 5)
    heir = scene.listen("heir", "crew", work=QUICK, batch=batch, options=options)
    victim.kill()
    assert publisher.count("offered") < COUNT or victim.count("handled") < COUNT, "too late to prove anything"
    heir.await_count("handled", 1)
    # The heir's joining may have taken a batch from the victim, the kill another.
    verdict = scene.finish({"crew": 2 * BATCH})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == COUNT


def test_workers_stopped_in_the_middle_of_a_batch(scene: Scene) -> None:
    options = {"listener.workers": 4}
    scene.publish("publisher", COUNT).await_end()
    first = scene.listen("first", "crew", work=QUICK, options=options)
    first.await_count("handled", COUNT // 4)
    first.end()
    first.await_end()
    assert first.count("handled") < COUNT, "too late to prove anything"
    scene.listen("second", "crew", options=options)
    verdict = scene.finish({"crew": BATCH})
    assert verdict.faultless, verdict


def test_at_most_once_a_kill_repeats_nothing(scene: Scene) -> None:
    options = {"listener.delivery": "at-most-once"}
    scene.publish("publisher", COUNT).await_end()
    victim = scene.listen("victim", "crew", work=QUICK, options=options)
    victim.await_count("handled", COUNT // 4)
    victim.kill()
    assert victim.count("handled") < COUNT, "too late to prove anything"
    heir = scene.listen("heir", "crew", options=options)
    until(lambda: heir.count("handled") and scene.nothing_waits({"crew": 0}), "the heir")
    verdict = scene.judge({"crew": 0})
    # What the victim had committed and not handled; nothing else is amiss.
    assert set(verdict.examples) <= {"lost"}, verdict
    assert verdict.lost <= BATCH, verdict


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
    sender = notifier.Notifier(transport, "shop", "messagingv2", topics=["payments"], key="payload:id")
    ids = [f"{run}-{number}" for number in range(COUNT)]
    sender.prepare(wait=True).send_many({}, "info", [("paid", {"id": one, "amount": 1}) for one in ids])
    transport.cleanup()
    book = Book(either_bus, tmp_path)
    try:
        for kill in range(1, KILLS + 1):
            book.keep()
            goal = COUNT * kill // (KILLS + 1)
            until(functools.partial(book.has, goal), f"{goal} payments")
            book.end(signal.SIGKILL)
        assert len(book.payments()) < COUNT, "too late to prove anything"
        book.keep()
        until(lambda: set(ids) <= set(book.payments()), "all payments")
        assert book.end(signal.SIGTERM) == 0
    finally:
        book.end(signal.SIGKILL)
    assert Counter(book.payments()) == Counter(ids)
