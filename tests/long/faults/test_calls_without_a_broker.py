"""A call does not wait for a broker: a control explains the longest of thousands."""

import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults import rows, timings
from faults.harness import Case
from faults.processes import SOAK_FACTOR, Bus, kafka_bus

COUNT = 2_000 * SOAK_FACTOR
RATE = 1_000.0
OpenCase = Callable[[Bus], Case]


@pytest.fixture(params=["hung", "absent"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address that accepts connections and never answers, or that refuses them."""
    with socket.socket() as broker:
        broker.bind(("127.0.0.1", 0))
        if request.param == "hung":
            broker.listen(128)
        yield f"kafka://127.0.0.1:{broker.getsockname()[1]}"


def complaints(
    case: Case, directory: pathlib.Path, count: int, options: dict[str, Any], **more: Any
) -> list[str]:
    """Publish without a broker from the first call on; return the broken limits."""
    case.start_controls()
    streams = case.publish("streaming", count, mode="stream", rate=RATE, options=options, **more)
    streams.wait_for("accepted", count)
    found = timings.measure(directory)
    # Without the first call, which is judged too.
    assert found.calls == count - 1
    return rows.broken_limits(found, rows.allowed_growth(options, count))


@pytest.mark.parametrize("spooled", [False, True], ids=["outbox", "spool"])
def test_no_call_waits(
    address: str, client: str, open_case: OpenCase, tmp_path: pathlib.Path, spooled: object
) -> None:
    spool = {"notifications.spool_dir": str(tmp_path / "spool"), "notifications.spool_after": 0.5}
    case = open_case(kafka_bus(address, client))
    assert complaints(case, tmp_path, COUNT, spool if spooled else {}) == []


def test_one_that_waits_is_caught(open_case: OpenCase, tmp_path: pathlib.Path) -> None:
    case = open_case(kafka_bus("kafka://127.0.0.1:1", "confluent-kafka"))
    said = complaints(case, tmp_path, COUNT // 2, {}, saboteur="KeepsTheCallerWaiting")
    assert any(each.startswith("stall: a call took ") for each in said)
