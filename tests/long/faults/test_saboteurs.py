"""The checker catches each saboteur.

``IgnoresDeliveryErrors`` is in ``test_full_disks``, where there are errors to ignore.
"""

from collections.abc import Callable

import pytest

from faults import checker
from faults.harness import Case
from faults.processes import BATCH_RECORDS, Bus, wait_until

COUNT = 600
OpenCase = Callable[[Bus], Case]
BLAMES = ("lost", "beyond_bound", "reordered", "invented", "wrong_pool", "false_acknowledged")


@pytest.fixture
def case(sqlite_bus: Bus, open_case: OpenCase) -> Case:
    return open_case(sqlite_bus)


def kill(case: Case, saboteur: str) -> checker.Verdict:
    # All is there, so its first batch is a full one; it is killed in the middle of that.
    case.publish("publisher", COUNT).wait_for_exit()
    victim = case.listen("victim", "main", work_seconds=0.02, saboteur=saboteur)
    victim.wait_for("handled", BATCH_RECORDS // 2)
    victim.kill()
    case.listen("heir", "main", saboteur=saboteur)
    return finish_behind(case, {"main": BATCH_RECORDS})


def hand_over(case: Case, saboteur: str) -> checker.Verdict:
    first = case.listen("first", "main", saboteur=saboteur)
    case.publish("publisher", COUNT).wait_for_exit()
    first.wait_for("handled", COUNT // 2)
    first.terminate()
    first.wait_for_exit()
    case.listen("second", "main", saboteur=saboteur)
    return finish_behind(case, {"main": BATCH_RECORDS})


def refuse(case: Case, saboteur: str) -> checker.Verdict:
    case.listen("picky", "picky", refuse_every=10, saboteur=saboteur)
    case.listen("easy", "easy", saboteur=saboteur)
    case.publish("publisher", COUNT).wait_for_exit()
    pools = {"picky": 0, "easy": 0}
    wait_until(lambda: case.has_seen("publisher", pools) and case.has_caught_up(pools), "all that is there")
    return case.judge(pools)


def finish_behind(case: Case, pools: dict[str, int]) -> checker.Verdict:
    """Judge when every pool has handled what is published last."""
    for each in case.publishers:
        each.wait_for_exit()
    case.publish("last", 200).wait_for_exit()
    wait_until(lambda: case.has_seen("last", pools), "the last ones")
    return case.judge(pools)


@pytest.mark.parametrize(
    ("saboteur", "scenario", "caught"),
    [
        ("CommitsBeforeTheWork", kill, "lost"),
        ("NeverCommits", hand_over, "beyond_bound"),
        ("HandsOverBackwards", hand_over, "reordered"),
        ("ForgetsWhatWasRefused", refuse, "lost"),
        ("RequeuesForEverybody", refuse, "wrong_pool"),
        ("ChangesThePayload", hand_over, "invented"),
    ],
)
def test_the_checker_catches(
    case: Case, saboteur: str, scenario: Callable[[Case, str], checker.Verdict], caught: str
) -> None:
    verdict = scenario(case, saboteur)
    assert getattr(verdict, caught), verdict


@pytest.mark.parametrize("scenario", [kill, hand_over, refuse])
def test_it_finds_nothing_where_nothing_is_broken(
    case: Case, scenario: Callable[[Case, str], checker.Verdict]
) -> None:
    verdict = scenario(case, "")
    assert verdict.is_valid, verdict
