"""A call does not wait for a broker: beside a control, the longest of thousands is the machine's doing."""

import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults import rows, timings
from faults.harness import LOAD, Bus, Scene, kafka

COUNT = 2_000 * LOAD
RATE = 1_000.0
OpenScene = Callable[[Bus], Scene]


@pytest.fixture(params=["hung", "absent"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where connections are taken and nothing is ever answered, or refused."""
    with socket.socket() as broker:
        broker.bind(("127.0.0.1", 0))
        if request.param == "hung":
            broker.listen(128)
        yield f"kafka://127.0.0.1:{broker.getsockname()[1]}"


def complaints(
    scene: Scene, directory: pathlib.Path, count: int, options: dict[str, Any], **more: Any
) -> list[str]:
    """Publish, from the first call on without a broker; say what took too long."""
    scene.control()
    streams = scene.publish("streams", count, how="stream", rate=RATE, options=options, **more)
    streams.await_count("accepted", count)
    found = timings.measure(directory)
    # All but the first, which is judged as well.
    assert found.calls == count - 1
    return rows.late(found, rows.promised(options, count))


@pytest.mark.parametrize("spooled", [False, True], ids=["outbox", "spool"])
def test_no_call_waits(
    address: str, client: str, open_scene: OpenScene, tmp_path: pathlib.Path, spooled: object
) -> None:
    spool = {"notifications.spool_dir": str(tmp_path / "spool"), "notifications.spool_after": 0.5}
    scene = open_scene(kafka(address, client))
    assert complaints(scene, tmp_path, COUNT, spool if spooled else {}) == []


def test_one_that_waits_is_caught(open_scene: OpenScene, tmp_path: pathlib.Path) -> None:
    scene = open_scene(kafka("kafka://127.0.0.1:1", "confluent-kafka"))
    said = complaints(scene, tmp_path, COUNT // 2, {}, breakage="KeepsTheCallerWaiting")
    assert any(each.startswith("stall: a call took ") for each in said)
