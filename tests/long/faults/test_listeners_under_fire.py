"""Listeners that are killed, stopped or ended: nothing is lost, little is repeated."""

import signal
from collections.abc import Callable

import pytest

from faults import checker
from faults.harness import Case
from faults.processes import BATCH_RECORDS, SOAK_FACTOR

COUNT = 1_500 * SOAK_FACTOR
QUICK_SECONDS = 0.001  # seconds for each, so that a fault hits a listener at work


@pytest.mark.parametrize("batch", [False, True], ids=["one-by-one", "batches"])
def test_killed_in_the_middle_of_a_batch(kill_a_member: Callable[..., checker.Verdict], batch: bool) -> None:
    verdict = kill_a_member(COUNT, work_seconds=QUICK_SECONDS, batch=batch)
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == COUNT


def test_stopped_for_longer_than_its_session(case: Case) -> None:
    case.publish("publisher", COUNT)
    stopped = case.listen("stopped", "main", work_seconds=QUICK_SECONDS)
    stopped.wait_for("handled", COUNT // 10)
    case.pause(stopped)
    handled = stopped.count("handled")
    assert handled < COUNT
    other = case.listen("other", "main", work_seconds=QUICK_SECONDS)
    # Everything but what the stopped one had committed: so its session was over.
    other.wait_for("handled", COUNT - handled)
    stopped.send_signal(signal.SIGCONT)
    verdict = case.finish({"main": 2 * BATCH_RECORDS})
    assert verdict.is_valid, verdict


def test_sigterm_commits_what_is_finished_and_leaves_at_once(case: Case) -> None:
    case.publish("publisher", COUNT).wait_for_exit()
    first = case.listen("first", "main", work_seconds=QUICK_SECONDS)
    first.wait_for("handled", COUNT // 4)
    first.terminate()
    first.wait_for_exit()
    assert first.count("handled") < COUNT, "too late to prove anything"
    second = case.listen("second", "main")
    # Nothing twice: everything that was finished was committed.
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert first.count("handled") + second.count("handled") == COUNT
