"""Buses for fault tests, and the table of their verdicts."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faults import checker
from faults.harness import Case, opened_case
from faults.processes import BATCH_RECORDS, Bus, kafka_bus

TABLE = "faults"


@pytest.fixture
def sqlite_bus(tmp_path: pathlib.Path) -> Bus:
    log = tmp_path / "bus.db"
    return Bus("sqlite", f"sqlite:///{log}?session_timeout=2", log)


@pytest.fixture(params=["sqlite", "confluent-kafka", "kafka-python"])
def bus(request: pytest.FixtureRequest) -> Bus:
    """Each test that asks for it runs over SQLite and over a broker that stays well."""
    return _healthy(request)


@pytest.fixture(params=["sqlite", "confluent-kafka"])
def either_bus(request: pytest.FixtureRequest) -> Bus:
    """As ``bus``, where the client library plays no part."""
    return _healthy(request)


def _healthy(request: pytest.FixtureRequest) -> Bus:
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_bus")  # type: ignore[no-any-return]
    return kafka_bus(request.getfixturevalue("kafka_cluster").url, request.param)


@pytest.fixture
def open_case(
    tmp_path: pathlib.Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[Callable[[Bus], Case]]:
    """Open a case on a bus; all its processes end with the test."""
    with contextlib.ExitStack() as stack:

        def note(row: str) -> None:
            record_property(TABLE, f"{request.node.name}: {row}")

        def open_on(bus: Bus) -> Case:
            return stack.enter_context(opened_case(bus, tmp_path, note))

        yield open_on


@pytest.fixture
def case(bus: Bus, open_case: Callable[[Bus], Case]) -> Case:
    return open_case(bus)


@pytest.fixture
def kill_a_member(case: Case) -> Callable[..., checker.Verdict]:
    """Kill a listener in the middle of a batch while another one joins; return the verdict."""

    def kill(count: int, **plan: Any) -> checker.Verdict:
        victim = case.listen("victim", "main", **plan)
        publisher = case.publish("publisher", count)
        victim.wait_for("handled", count // 5)
        heir = case.listen("heir", "main", **plan)
        victim.kill()
        early = publisher.count("offered") < count or victim.count("handled") < count
        assert early, "too late to prove anything"
        heir.wait_for("handled", 1)
        # The victim may have lost one batch when the heir joined, and another by the kill.
        return case.finish({"main": 2 * BATCH_RECORDS})

    return kill


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table of all cases, whichever process ran them."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    rows = sorted(
        {value for each in reports for name, value in getattr(each, "user_properties", []) if name == TABLE}
    )
    if rows:
        terminalreporter.section("faults")
        for row in rows:
            terminalreporter.write_line(row)
