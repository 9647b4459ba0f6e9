"""Listeners that are killed, stopped or ended: nothing is lost, little is repeated."""

import signal

import pytest

from faults.harness import BATCH, LOAD, Scene

COUNT = 1_500 * LOAD
QUICK = 0.001  # seconds for each, so that a fault hits a listener at work


@pytest.mark.parametrize("batch", [False, True], ids=["one-by-one", "batches"])
def test_killed_in_the_middle_of_a_batch(scene: Scene, batch: bool) -> None:
    victim = scene.listen("victim", "crew", work=QUICK, batch=batch)
    publisher = scene.publish("publisher", COUNT)
    victim.await_count("handled", COUNT // 5)
    heir = scene.listen("heir", "crew", work=QUICK, batch=batch)
    victim.kill()
    assert publisher.count("offered") < COUNT or victim.count("handled") < COUNT, "too late to prove anything"
    heir.await_count("handled", 1)
    # The heir's joining may have taken a batch from the victim, the kill another.
    verdict = scene.finish({"crew": 2 * BATCH})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == COUNT


def test_stopped_for_longer_than_its_session(scene: Scene) -> None:
    scene.publish("publisher", COUNT)
    sleeper = scene.listen("sleeper", "crew", work=QUICK)
    sleeper.await_count("handled", COUNT // 10)
    scene.pause(sleeper)
    handled = sleeper.count("handled")
    assert handled < COUNT
    other = scene.listen("other", "crew", work=QUICK)
    # All of it but what the sleeper had committed: so its session was over.
    other.await_count("handled", COUNT - handled)
    sleeper.send(signal.SIGCONT)
    verdict = scene.finish({"crew": 2 * BATCH})
    assert verdict.faultless, verdict


def test_sigterm_commits_what_is_finished_and_leaves_at_once(scene: Scene) -> None:
    scene.publish("publisher", COUNT).await_end()
    first = scene.listen("first", "crew", work=QUICK)
    first.await_count("handled", COUNT // 4)
    first.end()
    first.await_end()
    assert first.count("handled") < COUNT, "too late to prove anything"
    second = scene.listen("second", "crew")
    # Nothing twice: everything that was finished was committed.
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert first.count("handled") + second.count("handled") == COUNT
