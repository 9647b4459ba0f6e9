"""The harness as a program: a few faults, and the saboteurs."""

import json
import subprocess
import sys
from typing import Any

import pytest

from faults.__main__ import FAULTS, MAIN_FAULTS, REQUIREMENTS, parse_arguments, parse_duration, select_faults
from faults.nemesis.saboteurs import NAMES
from faults.processes import ENVIRONMENT


def called(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    command = [sys.executable, "-m", "faults", "--json", "--seconds", "0", *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_few_faults_end_in_a_row_each_and_break_no_promise() -> None:
    names = ["writers-killed", "listener-killed"]
    code, rows, said = called("--topology", "sqlite", "--load", "700", *names)
    assert (code, said) == (0, "no promise broken in 2 rows\n")
    assert {row["fault"] for row in rows} == set(names)
    for row in rows:
        assert row["offered"] >= 700
        assert row["offered"] >= row["acknowledged"] > 0
        assert row["handled"] > 0
        assert row["lost"] == row["reordered"] == row["wrong"] == 0
        assert row["repeated"] <= row["repeat_bound"]
        assert row["recovery"] > 0


def test_three_brokers_under_fire() -> None:
    """A leader is killed, clients are cut off, and a leader is cut off, where we may make namespaces."""
    names = ["leader-killed", "client-cut-off", "leader-alone"]
    _, rows, said = called(*names)
    skipped = {name for name in names if f"{name}: skipped: it needs a network namespace" in said}
    assert [row["fault"] for row in rows] == [name for name in names if name not in skipped]
    for row in rows:
        assert row["bus"] == "confluent-kafka"
        # Times mean nothing with so few calls beside other tests.
        assert [each for each in row["broken"] if not each.startswith(("p99: ", "stall: "))] == [], said
        assert row["acknowledged"] > 0
        assert row["lost"] == row["reordered"] == row["wrong"] == 0
        assert row["recovery"] > 0


@pytest.mark.parametrize(
    ("sabotage", "fault", "broken"),
    [
        ("CommitsBeforeTheWork", "listener-killed", "lost"),
        ("IgnoresDeliveryErrors", "without-retries", "lost"),
        ("DropsTheSpoolsTail", "two-on-one-spool", "lost"),
        ("SkipsTheFence", "listener-overtaken", "beyond_bound"),
        ("MisplacesReceipts", "poison", "false_acknowledged"),
        ("KeepsTheCallerWaiting", "poison", "stall"),
        ("KeepsEverything", "poison", "memory"),
        ("RequeuesForEverybody", "requeue-storm", "wrong_pool"),
    ],
)
def test_a_product_that_is_broken_on_purpose_is_caught(sabotage: str, fault: str, broken: str) -> None:
    code, (row,), said = called("--topology", "sqlite", "--sabotage", sabotage, fault)
    assert code == 1
    assert any(each.startswith(f"{broken}: ") for each in row["broken"]), row
    assert f"{fault} on sqlite: {broken}: " in said


def test_what_can_be_asked_for() -> None:
    assert len(FAULTS) > 40
    assert parse_arguments(["--load", "5"]).names == list(MAIN_FAULTS)
    assert set(parse_arguments([]).names) == set(FAULTS) >= set(MAIN_FAULTS)
    assert all(not fault.requires or fault.requires in REQUIREMENTS for fault in FAULTS.values())
    assert len(NAMES) > 8
    assert [parse_duration(text) for text in ("90", "1.5s", "60m", "2h")] == [90.0, 1.5, 3600.0, 7200.0]
    for wrong in (["no-such-fault"], ["--for", "soon"], ["--sabotage", "Nothing"]):
        with pytest.raises(SystemExit):
            parse_arguments(wrong)


def test_each_fault_is_run_wherever_it_can_happen(capsys: pytest.CaptureFixture[str]) -> None:
    def combinations(*arguments: str) -> set[tuple[str, str]]:
        return {(place, fault.name) for place, fault in select_faults(parse_arguments(arguments))}

    every = {(place, fault.name) for fault in FAULTS.values() for place in fault.topologies}
    assert combinations() == every
    assert combinations("retention") == {("three-brokers", "retention"), ("sqlite", "retention")}
    assert combinations("--topology", "sqlite") == {pair for pair in every if pair[0] == "sqlite"}
    assert combinations("--load", "5") == {("three-brokers", name) for name in MAIN_FAULTS}
    with pytest.raises(SystemExit):
        parse_arguments(["--topology", "sqlite", "leader-killed", "retention"])
    assert capsys.readouterr().err.endswith("error: leader-killed: not in sqlite: see --list\n")
