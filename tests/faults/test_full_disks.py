"""The disk under an SQLite log is full, and then has room again."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from faults.harness import Case
from faults.processes import BATCH_RECORDS, SOAK_FACTOR, Bus, wait_until
from faults.topology.small_disk import SmallDisk

COUNT = 2_000 * SOAK_FACTOR


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> Iterator[SmallDisk]:
    directory = tmp_path / "disk"
    directory.mkdir()
    made = SmallDisk(directory)
    yield made
    made.close()


@pytest.fixture
def case(disk: SmallDisk, open_case: Callable[[Bus], Case]) -> Case:
    return open_case(disk.bus)


@pytest.mark.parametrize("mode", ["chunk", pytest.param("stream", marks=pytest.mark.long)])
def test_publishing_waits_for_room_and_goes_on(case: Case, disk: SmallDisk, mode: str) -> None:
    listener = case.listen("listener", "main", work_seconds=0.001)
    publisher = case.publish("publisher", COUNT, mode=mode, rate=COUNT / 8)
    listener.wait_for("handled", COUNT // 10)
    with disk.full():
        wait_until(lambda: "disk is full" in publisher.stderr_tail(), "the publisher's message")
        assert publisher.count("offered") < COUNT or mode == "chunk"
    verdict = case.finish({"main": BATCH_RECORDS})
    assert verdict.is_valid, verdict
    assert verdict.acknowledged == COUNT


@pytest.mark.long
@pytest.mark.parametrize("saboteur", ["", "IgnoresDeliveryErrors"])
def test_without_retries_each_failure_is_told(case: Case, disk: SmallDisk, saboteur: str) -> None:
    """The saboteur that does not report failures is caught."""
    case.listen("listener", "main")
    publisher = case.publish(
        "publisher", COUNT, rate=COUNT / 8, options={"notifications.retry": 0}, saboteur=saboteur
    )
    publisher.wait_for("acknowledged", COUNT // 10)
    with disk.full():
        before = publisher.count("offered")
        publisher.wait_for("offered", before + 100)
    publisher.wait_for_exit()
    case.publish("later", 100).wait_for_exit()
    wait_until(lambda: case.has_seen("later", {"main": 0}), "what came later")
    verdict = case.judge({"main": BATCH_RECORDS})
    if saboteur:
        assert verdict.lost
        assert verdict.failed == 0
    else:
        assert verdict.is_valid, verdict
        assert verdict.failed
