"""Publishers that are killed or fork, and clocks that are stepped."""

import functools

import pytest

from faults.harness import Case
from faults.processes import BATCH_RECORDS, SOAK_FACTOR, wait_until
from faults.topology.clock import STEP_BACK, STEP_FORWARD

COUNT = 2_000 * SOAK_FACTOR


@pytest.mark.parametrize("mode", ["wait", "chunk"])
def test_killed_at_work(case: Case, mode: str) -> None:
    case.listen("listener", "main")
    victim = case.publish("victim", COUNT, mode=mode)
    other = case.publish("other", COUNT // 2, mode=mode)
    victim.wait_for("acknowledged", COUNT // 4)
    victim.kill()
    assert victim.count("acknowledged") < COUNT, "too late to prove anything"
    other.wait_for_exit()
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == victim.count("acknowledged") + COUNT // 2


def test_sigterm_ends_it_with_everything_flushed(case: Case) -> None:
    case.listen("listener", "main")
    publisher = case.publish("publisher", 50 * COUNT, mode="stream")
    publisher.wait_for("accepted", COUNT // 4)
    publisher.terminate()
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert COUNT // 4 <= verdict.acknowledged == verdict.offered < 50 * COUNT


@pytest.mark.parametrize("mode", ["chunk", "stream"])
def test_a_notifier_made_before_a_fork_works_on_both_sides(case: Case, mode: str) -> None:
    case.listen("listener", "main")
    case.publish("publisher", COUNT, mode=mode, fork_at=COUNT // 2)
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == COUNT + COUNT // 2


def test_clocks_that_are_stepped_an_hour_either_way(case: Case) -> None:
    picky = case.listen("picky", "main", work_seconds=0.001, refuse_every=5)
    steady = case.listen("steady", "main", work_seconds=0.001)
    publisher = case.publish("publisher", COUNT, rate=COUNT / 8)

    def handled() -> int:
        return picky.count("handled") + steady.count("handled")

    def reached(goal: int) -> bool:
        return handled() >= goal

    picky.wait_for("refused", 1)
    for step in (STEP_FORWARD, STEP_BACK, STEP_BACK, STEP_FORWARD):
        goal = min(handled() + COUNT // 8, COUNT)
        # The clock of one member only: the two disagree about the time.
        for each in (picky, publisher):
            each.send_signal(step)
        wait_until(functools.partial(reached, goal), "progress")
    verdict = case.finish({"main": 2 * BATCH_RECORDS})
    assert verdict.is_valid, verdict
    assert verdict.refused
