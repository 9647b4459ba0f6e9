"""The commands for topics and groups, on a real log."""

import csv
import datetime
import io
import json
import os
import pathlib
import pty
import subprocess
import sys

import pytest

from notifier_kafka.cli.output import cells, text
from notifier_kafka.contract.driver import Partition
from tests.shared import terminal
from tests.unit.cli.cli_runner import CliRunner

TIMEOUT_SECONDS = 60.0
HOSTILE = "evil\x1b[2J\u202e"


def test_a_topic_is_made_shown_purged_and_deleted(cli: CliRunner) -> None:
    assert cli.json("topics", "create", "t", "--partitions", "2") == [
        {"name": "t", "partitions": 2, "records": 0}
    ]
    cli.publish("t", 9)
    shown = cli.json("topics", "show", "t")
    assert (shown["name"], shown["records"]) == ("t", 9)
    assert [row["partition"] for row in shown["partitions"]] == [0, 1]
    assert sum(row["next"] for row in shown["partitions"]) == 9
    assert shown["details"]["file"].endswith("log.db")

    assert cli.json("topics", "purge", "t", "--yes") == [{"name": "t", "partitions": 2, "records": 9}]
    purged = cli.json("topics", "show", "t")
    assert purged["records"] == 0
    assert [(row["first"], row["next"]) for row in purged["partitions"]] == [
        (row["next"], row["next"]) for row in shown["partitions"]
    ]

    assert cli.json("topics", "delete", "t", "-y") == [{"name": "t", "partitions": 2, "records": 0}]
    assert cli.json("topics", "list") == []


def test_a_topic_that_is_there_is_not_made_again(cli: CliRunner) -> None:
    cli.topic("t", 3)
    for shape in ((), ("--partitions", "1"), ("--partitions", "4")):
        code, said = cli.refused("topics", "create", "t", *shape)
        assert code == 5
        assert "'t' exists already" in said
    assert len(cli.driver.admin().describe_topic("t").spans) == 1


def test_settings_that_the_log_does_not_have_are_refused(cli: CliRunner) -> None:
    code, said = cli.refused("topics", "create", "t", "--set", "retention.ms=1", "--set", "a.b=c=d")
    assert code == 5
    assert "SQLite topics have no settings, but a.b, retention.ms was given" in said
    assert cli.driver.admin().list_topics() == []


@pytest.mark.parametrize(
    "argv",
    [
        ("topics", "show", "nowhere"),
        ("topics", "delete", "nowhere", "--yes"),
        ("topics", "purge", "nowhere", "--yes"),
        ("groups", "reset", "g", "--to", "latest", "--topic", "nowhere"),
        ("groups", "lag", "nowhere"),
        ("groups", "reset", "nowhere", "--to", "latest"),
    ],
)
def test_what_is_not_there_is_a_usage_error(cli: CliRunner, argv: tuple[str, ...]) -> None:
    code, said = cli.refused(*argv)
    assert code == 2
    assert "'nowhere'" in said or "--topic" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("topics", "create", "t", "--partitions", "0"), "is not a whole number above zero"),
        (("topics", "create", "t", "--set", "retention.ms"), "'retention.ms' is not NAME=VALUE"),
        (("topics", "create", "t", "--set", "=1"), "is not NAME=VALUE"),
        (("groups", "reset", "g"), "required: --to"),
        (("groups", "reset", "g", "--to", "yesterday"), "none of earliest, latest, an offset or a time"),
        (("groups", "reset", "g", "--to", "-5"), "none of earliest"),
        (("groups", "reset", "g", "--to", "0001-01-01T00:00+14:00"), "none of earliest"),
    ],
)
def test_arguments_that_make_no_sense(cli: CliRunner, argv: tuple[str, ...], said: str) -> None:
    code, line = cli.refused(*argv)
    assert code == 2
    assert said in line


@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_without_a_terminal_nothing_is_deleted_unless_told(cli: CliRunner, verb: str) -> None:
    cli.topic("t", 3)
    code, said = cli.refused("topics", verb, "t")
    assert code == 2
    assert "add --yes" in said
    assert cli.json("topics", "list") == [{"name": "t", "partitions": 1, "records": 3}]


def on_a_terminal(answer: bytes, *argv: str) -> tuple[int, str]:
    """Run the program on a new terminal, and answer its question."""
    pid, screen = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "notifier_kafka.cli.main", *argv])
    shown = b""
    for part in terminal.shown(screen):
        shown += part
        if shown.endswith(b"[y/N] "):
            os.write(screen, answer)
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(
    ("answer", "left"), [(b"y\n", 0), (b"YES\n", 0), (b"n\n", 3), (b"\n", 3), (b"\x04", 3), (b"\x03", 3)]
)
def test_a_person_is_asked_and_only_yes_is_yes(cli: CliRunner, answer: bytes, left: int) -> None:
    cli.topic("t", 3)
    code, shown = on_a_terminal(answer, "--transport-url", cli.url, "topics", "purge", "t")
    assert f"purge t (partitions: 1, records: 3) on {cli.url}? [y/N] " in shown
    assert "Traceback" not in shown
    assert code == (130 if left else 0)
    assert ("| t " in shown) is (left == 0)
    assert cli.json("topics", "list")[0]["records"] == left


def test_a_group_is_listed_with_members_positions_and_lag(cli: CliRunner) -> None:
    cli.topic("t", 10)
    first = cli.driver.subscribe(["t"], "g", "earliest")
    first.commit({Partition("t", 0): first.poll(4, TIMEOUT_SECONDS)[-1].offset + 1})
    second = cli.driver.subscribe(["t"], "g", "earliest")
    second.poll(1, 0.1)
    assert cli.json("groups", "list") == [{"name": "g", "members": 2, "lag": 6}]
    owned, idle = cli.json("groups", "lag", "g")
    members = cli.driver.admin().describe_group("g").members
    assert owned == {
        "topic": "t",
        "partition": 0,
        "position": 4,
        "lag": 6,
        "member": next(name for name, parts in members.items() if parts),
    }
    assert idle == dict.fromkeys(owned) | {"member": next(name for name, own in members.items() if not own)}


def test_a_group_that_everybody_left_keeps_its_positions(cli: CliRunner) -> None:
    cli.topic("t", 10)
    cli.driver.admin().reset_group("g", {Partition("t", 0): 4})
    code, out, _ = cli.run("groups", "lag", "g")
    assert code == 0
    assert out.splitlines()[3].split() == ["|", "t", "|", "0", "|", "4", "|", "6", "|", "-", "|"]
    assert cli.json("groups", "lag", "g")[0]["member"] is None
    (row,) = csv.DictReader(io.StringIO(cli.run("groups", "list", "-f", "csv")[1]))
    assert row == {"name": "g", "members": "0", "lag": "6"}


@pytest.mark.parametrize(
    ("to", "new"), [("earliest", 5), ("latest", 15), ("7", 7), ("0", 5), ("99", 15), ("2020-01-01", 5)]
)
def test_a_reset_is_a_dry_run_until_told(cli: CliRunner, to: str, new: int) -> None:
    cli.topic("t", 5)
    cli.driver.admin().purge_topic("t")
    cli.publish("t", 10)
    at = Partition("t", 0)
    cli.driver.admin().reset_group("g", {at: 9})
    code, out, err = cli.run("groups", "reset", "g", "--to", to, "--json")
    expected = {"topic": "t", "partition": 0, "old": 9, "new": new, "lag": 15 - new}
    assert (code, json.loads(out)) == (0, [expected])
    assert "nothing was changed" in err
    assert cli.positions("g") == {at: 9}
    assert cli.json("groups", "reset", "g", "--to", to, "--execute") == [expected]
    assert cli.positions("g") == {at: new}


def test_a_reset_to_a_time_begins_with_what_came_then(cli: CliRunner) -> None:
    cli.topic("t", 5)
    (span,) = cli.driver.spans(["t"])
    fourth = list(cli.driver.read(span))[3]
    shown = text.iso(fourth.timestamp)
    cli.driver.admin().reset_group("g", {span.partition: 0})
    code, out, err = cli.run("groups", "reset", "g", "--to", shown, "--json")
    assert code == 0
    moment = datetime.datetime.fromisoformat(shown).timestamp()
    (again,) = cli.driver.spans(["t"], since=moment)
    assert json.loads(out)[0]["new"] == again.start
    assert f"to {shown}: nothing was changed" in err
    (row,) = json.loads(cli.run("groups", "reset", "g", "--to", "2999-01-01T00:00", "--json")[1])
    assert (row["new"], row["lag"]) == (5, 0)


def test_a_reset_is_refused_while_members_are_active(cli: CliRunner) -> None:
    cli.topic("t", 5)
    member = cli.driver.subscribe(["t"], "g", "earliest")
    member.commit({Partition("t", 0): member.poll(5, TIMEOUT_SECONDS)[-1].offset + 1})
    code, _, err = cli.run("groups", "reset", "g", "--to", "earliest")
    assert code == 0
    assert "the group has active members (1): stop them first" in err
    code, said = cli.refused("groups", "reset", "g", "--to", "earliest", "--execute")
    assert code == 3
    assert "active members (1): stop them" in said
    assert cli.positions("g") == {Partition("t", 0): 5}
    member.close()
    assert cli.run("groups", "reset", "g", "--to", "earliest", "--execute")[0] == 0
    assert cli.positions("g") == {Partition("t", 0): 0}


def test_a_reset_moves_the_topics_named_and_no_other(cli: CliRunner) -> None:
    for name in ("a", "b", "c"):
        cli.topic(name, 5)
    cli.driver.admin().reset_group("g", {Partition("a", 0): 2, Partition("b", 0): 2})
    named = ("--topic", "b", "--topic", "c", "--topic", "b")
    rows = cli.json("groups", "reset", "g", "--to", "latest", *named, "--execute")
    assert [(row["topic"], row["old"], row["new"]) for row in rows] == [("b", 2, 5), ("c", None, 5)]
    assert cli.positions("g") == {Partition("a", 0): 2, Partition("b", 0): 5, Partition("c", 0): 5}
    rows = cli.json("groups", "reset", "g", "--to", "0", "--execute")
    assert [row["topic"] for row in rows] == ["a", "b", "c"]


def test_a_group_that_is_not_there_yet_is_told_of(cli: CliRunner) -> None:
    cli.topic("t", 5)
    _, _, err = cli.run("groups", "reset", "fresh", "--to", "latest", "--topic", "t")
    assert "there is no group 'fresh'; this would create it" in err
    assert cli.json("groups", "list") == []


def test_names_cannot_steer_the_terminal(cli: CliRunner) -> None:
    cli.topic("t", 1)
    cli.driver.admin().reset_group(HOSTILE, {Partition("t", 0): 1})
    for argv in (("groups", "list"), ("groups", "lag", HOSTILE), ("groups", "reset", HOSTILE, "--to", "0")):
        code, out, err = cli.run(*argv)
        assert code == 0
        assert all(line.isprintable() for line in (out + err).splitlines())
    assert "evil\\x1b[2J\\u202e" in cli.run("groups", "list")[1]


def test_names_are_no_formulas_in_csv(cli: CliRunner) -> None:
    cli.topic("t", 1)
    cli.driver.admin().reset_group("=cmd()", {Partition("t", 0): 1})
    _, out, _ = cli.run("groups", "list", "-f", "csv")
    assert '"\'=cmd()"' in out


@pytest.mark.parametrize(
    "name", ["t$(touch run).info", "t`touch run`", 't"; touch run; "', "t'; touch run; '", "t\\$(touch run)"]
)
def test_a_shell_runs_nothing_of_a_name(cli: CliRunner, tmp_path: pathlib.Path, name: str) -> None:
    cli.topic(name, 2)
    code, out, err = cli.run("topics", "show", name, "-f", "shell", "--prefix", "topic_")
    assert (code, err) == (0, "")
    script = 'eval "$1"; printf "%s %s" "$topic_records" "$topic_name"'
    said = subprocess.run(["sh", "-c", script, "sh", out], cwd=tmp_path, capture_output=True, check=True)
    assert (said.stdout.decode(), said.stderr) == (f"2 {name}", b"")
    assert not (tmp_path / "run").exists()


def test_cells_show_names_and_values_of_the_log_harmlessly() -> None:
    pairs = cells.Pairs({HOSTILE: HOSTILE, "a": "b"})
    assert pairs.human_readable().splitlines() == ["evil\\x1b[2J\\u202e = evil\\x1b[2J\\u202e", "a = b"]
    assert pairs.machine_readable()["a"] == "b"
    table = cells.Table([{"partition": 0, "details": "leader 1"}, {"partition": 1}])
    assert table.human_readable() == "partition 0; leader 1\npartition 1"
    assert table.machine_readable() == [{"partition": 0, "details": "leader 1"}, {"partition": 1}]


def test_a_log_that_cannot_be_used_is_3_for_every_command(cli: CliRunner, tmp_path: pathlib.Path) -> None:
    (tmp_path / "foreign").write_bytes(b"this is no database " * 100)
    cli.url = f"sqlite:///{tmp_path}/foreign"
    commands: list[tuple[str, ...]] = [
        ("topics", "show", "t"),
        ("topics", "create", "t"),
        ("topics", "delete", "t", "-y"),
        ("topics", "purge", "t", "-y"),
        ("groups", "list"),
        ("groups", "lag", "g"),
        ("groups", "reset", "g", "--to", "0"),
    ]
    assert [cli.refused(*argv)[0] for argv in commands] == [3] * len(commands)
