"""Pools side by side: what one refuses, what is poison, and how slow one is concerns no other."""

from collections.abc import Callable

import pytest

from faults.harness import LOAD, Bus, Scene, until

COUNT = 1_500 * LOAD


@pytest.fixture
def scene(either_bus: Bus, open_scene: Callable[[Bus], Scene]) -> Scene:
    return open_scene(either_bus)


@pytest.mark.parametrize("raises", [False, True], ids=["requeue", "raises"])
def test_refusals_come_back_to_their_pool_alone(scene: Scene, raises: bool) -> None:
    scene.listen("picky", "picky", refuse=10, times=2, raises=raises)
    scene.listen("easy", "easy")
    scene.publish("publisher", COUNT)
    verdict = scene.finish({"picky": 0, "easy": 0})
    assert verdict.faultless, verdict
    assert verdict.refused == COUNT // 10


def test_poison_is_set_aside_and_costs_no_neighbour(scene: Scene) -> None:
    scene.listen("eater", "crew")
    publisher = scene.publish("publisher", COUNT, poison=100)
    publisher.await_end()
    until(lambda: scene.verdict({"crew": 0}).lost == COUNT // 100, "all but the poison")
    scene.end_listeners()
    assert scene.set_aside("crew") == COUNT // 100
    verdict = scene.finish({"crew": 0})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == COUNT + COUNT // 100


def test_a_slow_pool_holds_up_nobody(scene: Scene) -> None:
    slow = scene.listen("slow", "slow", work=0.05)
    quick = scene.listen("quick", "quick")
    slow.await_count("listening", 1)
    publisher = scene.publish("publisher", COUNT)
    publisher.await_end()
    quick.await_count("handled", COUNT)
    assert slow.count("handled") < COUNT // 2
    slow.end()
    slow.await_end()
    scene.listen("successor", "slow")
    verdict = scene.finish({"slow": 0, "quick": 0})
    assert verdict.faultless, verdict
