"""Pools side by side: refusals, poison messages and slowness of one do not affect another."""

from collections.abc import Callable

import pytest

from faults.harness import Case
from faults.processes import SOAK_FACTOR, Bus, wait_until

COUNT = 1_500 * SOAK_FACTOR


@pytest.fixture
def case(either_bus: Bus, open_case: Callable[[Bus], Case]) -> Case:
    return open_case(either_bus)


@pytest.mark.parametrize("raises", [False, True], ids=["requeue", "raises"])
def test_refusals_come_back_to_their_pool_alone(case: Case, raises: bool) -> None:
    case.listen("picky", "picky", refuse_every=10, refusals=2, raises=raises)
    case.listen("easy", "easy")
    case.publish("publisher", COUNT)
    verdict = case.finish({"picky": 0, "easy": 0})
    assert verdict.is_valid, verdict
    assert verdict.refused == COUNT // 10


def test_poison_is_set_aside_and_costs_no_neighbour(case: Case) -> None:
    case.listen("eater", "main")
    publisher = case.publish("publisher", COUNT, poison_every=100)
    publisher.wait_for_exit()
    wait_until(lambda: case.check({"main": 0}).lost == COUNT // 100, "all but the poison")
    case.stop_listeners()
    assert case.record_dead_letters("main") == COUNT // 100
    verdict = case.finish({"main": 0})
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == COUNT + COUNT // 100


def test_a_slow_pool_holds_up_nobody(case: Case) -> None:
    slow = case.listen("slow", "slow", work_seconds=0.05)
    quick = case.listen("quick", "quick")
    slow.wait_for("listening", 1)
    publisher = case.publish("publisher", COUNT)
    publisher.wait_for_exit()
    quick.wait_for("handled", COUNT)
    assert slow.count("handled") < COUNT // 2
    slow.terminate()
    slow.wait_for_exit()
    case.listen("successor", "slow")
    verdict = case.finish({"slow": 0, "quick": 0})
    assert verdict.is_valid, verdict
