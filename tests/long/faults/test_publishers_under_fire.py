"""Publishers that are killed or fork, a clock that is stepped under everybody."""

import functools

import pytest

from faults.harness import BATCH, LOAD, Scene, until
from faults.topology.clock import BACK, FORWARD

COUNT = 2_000 * LOAD


@pytest.mark.parametrize("how", ["wait", "chunk"])
def test_killed_at_work(scene: Scene, how: str) -> None:
    scene.listen("listener", "crew")
    victim = scene.publish("victim", COUNT, how=how)
    other = scene.publish("other", COUNT // 2, how=how)
    victim.await_count("acknowledged", COUNT // 4)
    victim.kill()
    assert victim.count("acknowledged") < COUNT, "too late to prove anything"
    other.await_end()
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == victim.count("acknowledged") + COUNT // 2


def test_sigterm_ends_it_with_everything_flushed(scene: Scene) -> None:
    scene.listen("listener", "crew")
    publisher = scene.publish("publisher", 50 * COUNT, how="stream")
    publisher.await_count("accepted", COUNT // 4)
    publisher.end()
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert COUNT // 4 <= verdict.acknowledged == verdict.offered < 50 * COUNT


@pytest.mark.parametrize("how", ["chunk", "stream"])
def test_a_notifier_made_before_a_fork_works_on_both_sides(scene: Scene, how: str) -> None:
    scene.listen("listener", "crew")
    scene.publish("publisher", COUNT, how=how, fork_at=COUNT // 2)
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == COUNT + COUNT // 2


def test_clocks_that_are_stepped_an_hour_either_way(scene: Scene) -> None:
    picky = scene.listen("picky", "crew", work=0.001, refuse=5)
    steady = scene.listen("steady", "crew", work=0.001)
    publisher = scene.publish("publisher", COUNT, rate=COUNT / 8)

    def handled() -> int:
        return picky.count("handled") + steady.count("handled")

    def reached(goal: int) -> bool:
        return handled() >= goal

    picky.await_count("refused", 1)
    for step in (FORWARD, BACK, BACK, FORWARD):
        goal = min(handled() + COUNT // 8, COUNT)
        # One of the two members: they disagree about the time.
        for each in (picky, publisher):
            each.send(step)
        until(functools.partial(reached, goal), "the work to go on")
    verdict = scene.finish({"crew": 2 * BATCH})
    assert verdict.faultless, verdict
    assert verdict.refused
