"""Products that are broken on purpose: the checker catches each of them.

``IgnoresDeliveryErrors`` is in ``test_full_disks``, where there are errors to ignore.
"""

from collections.abc import Callable

import pytest

from faults import checker
from faults.harness import BATCH, Bus, Scene, until

COUNT = 600
OpenScene = Callable[[Bus], Scene]
BLAMES = ("lost", "beyond_bound", "reordered", "invented", "wrong_pool", "false_acknowledged")


@pytest.fixture
def scene(sqlite_bus: Bus, open_scene: OpenScene) -> Scene:
    return open_scene(sqlite_bus)


def killed(scene: Scene, breakage: str) -> checker.Verdict:
    # All is there, so that its first batch is a whole one; it is killed in the middle of that.
    scene.publish("publisher", COUNT).await_end()
    victim = scene.listen("victim", "crew", work=0.02, breakage=breakage)
    victim.await_count("handled", BATCH // 2)
    victim.kill()
    scene.listen("heir", "crew", breakage=breakage)
    return ended(scene, {"crew": BATCH})


def handed_over(scene: Scene, breakage: str) -> checker.Verdict:
    first = scene.listen("first", "crew", breakage=breakage)
    scene.publish("publisher", COUNT).await_end()
    first.await_count("handled", COUNT // 2)
    first.end()
    first.await_end()
    scene.listen("second", "crew", breakage=breakage)
    return ended(scene, {"crew": BATCH})


def refused(scene: Scene, breakage: str) -> checker.Verdict:
    scene.listen("picky", "picky", refuse=10, breakage=breakage)
    scene.listen("easy", "easy", breakage=breakage)
    scene.publish("publisher", COUNT).await_end()
    pools = {"picky": 0, "easy": 0}
    until(lambda: scene.has_seen("publisher", pools) and scene.nothing_waits(pools), "all that is there")
    return scene.judge(pools)


def ended(scene: Scene, pools: dict[str, int]) -> checker.Verdict:
    """Judge when all has gone by: what is published last has been handled by every pool."""
    for each in scene.publishers:
        each.await_end()
    scene.publish("last", 200).await_end()
    until(lambda: scene.has_seen("last", pools), "the last ones")
    return scene.judge(pools)


@pytest.mark.parametrize(
    ("breakage", "case", "caught"),
    [
        ("CommitsBeforeTheWork", killed, "lost"),
        ("NeverCommits", handed_over, "beyond_bound"),
        ("HandsOverBackwards", handed_over, "reordered"),
        ("ForgetsWhatWasRefused", refused, "lost"),
        ("RequeuesForEverybody", refused, "wrong_pool"),
        ("ChangesThePayload", handed_over, "invented"),
    ],
)
def test_the_checker_catches(
    scene: Scene, breakage: str, case: Callable[[Scene, str], checker.Verdict], caught: str
) -> None:
    verdict = case(scene, breakage)
    assert getattr(verdict, caught), verdict


@pytest.mark.parametrize("case", [killed, handed_over, refused])
def test_it_finds_nothing_where_nothing_is_broken(
    scene: Scene, case: Callable[[Scene, str], checker.Verdict]
) -> None:
    verdict = case(scene, "")
    assert verdict.faultless, verdict
