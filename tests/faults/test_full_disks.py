"""The disk under an SQLite log fills up, and is given room again."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from faults.harness import BATCH, LOAD, Bus, Scene, until
from faults.topology.small_disk import SmallDisk

COUNT = 2_000 * LOAD


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    place.mkdir()
    made = SmallDisk(place)
    yield made
    made.close()


@pytest.fixture
def scene(disk: SmallDisk, open_scene: Callable[[Bus], Scene]) -> Scene:
    return open_scene(disk.bus)


@pytest.mark.parametrize("how", ["chunk", pytest.param("stream", marks=pytest.mark.long)])
def test_publishing_waits_for_room_and_goes_on(scene: Scene, disk: SmallDisk, how: str) -> None:
    listener = scene.listen("listener", "crew", work=0.001)
    publisher = scene.publish("publisher", COUNT, how=how, rate=COUNT / 8)
    listener.await_count("handled", COUNT // 10)
    with disk.full():
        until(lambda: "disk is full" in publisher.said(), "the publisher to notice")
        assert publisher.count("offered") < COUNT or how == "chunk"
    verdict = scene.finish({"crew": BATCH})
    assert verdict.faultless, verdict
    assert verdict.acknowledged == COUNT


@pytest.mark.long
@pytest.mark.parametrize("breakage", ["", "IgnoresDeliveryErrors"])
def test_without_retries_each_failure_is_told(scene: Scene, disk: SmallDisk, breakage: str) -> None:
    """And the product that keeps it for itself is found out."""
    scene.listen("listener", "crew")
    publisher = scene.publish(
        "publisher", COUNT, rate=COUNT / 8, options={"notifications.retry": 0}, breakage=breakage
    )
    publisher.await_count("acknowledged", COUNT // 10)
    with disk.full():
        before = publisher.count("offered")
        publisher.await_count("offered", before + 100)
    publisher.await_end()
    scene.publish("later", 100).await_end()
    until(lambda: scene.has_seen("later", {"crew": 0}), "what came later")
    verdict = scene.judge({"crew": BATCH})
    if breakage:
        assert verdict.lost
        assert verdict.failed == 0
    else:
        assert verdict.faultless, verdict
        assert verdict.failed
