"""The programs and commands in the README and the first steps do what these promise."""

import datetime
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
from collections import Counter

import pytest

from notifier_kafka.cli import main
from notifier_kafka.cli.demo import outcome, sandbox, traffic
from tests.shared.checkout import ROOT

DEADLINE = 60.0


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}


def talk(program: str, directory: pathlib.Path, environment: dict[str, str], lines: int) -> list[str]:
    """Run a program, and press Enter after a number of lines. Return its output."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        cwd=directory,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stdout
            said = [running.stdout.readline() for _ in range(lines)]
            rest, _ = running.communicate("\n", DEADLINE)
        finally:
            running.kill()
    assert running.returncode == 0
    return [*said, *rest.splitlines()]


def first_line(command: list[str], directory: pathlib.Path, environment: dict[str, str]) -> str:
    """Run a command until it prints its first line, and stop it. Return this line."""
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        # A command that prints nothing is stopped too.
        impatience = threading.Timer(DEADLINE, running.kill)
        impatience.start()
        try:
            assert running.stdout
            said = running.stdout.readline()
            running.terminate()
            rest = running.communicate()
        finally:
            impatience.cancel()
            running.kill()
    assert (running.returncode, *rest) == (0, "", "")
    return said


def test_the_program_of_the_readme(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    [program] = blocks("README.md", "python")
    said = talk(program, tmp_path, environment, 2)
    assert sorted(said) == ["Enter ends it\n", "order.paid {'order': 17}\n"]
    assert (tmp_path / "notifications.db").exists()


def test_the_programs_of_the_first_steps(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    [ini] = blocks("docs/first-steps.md", "ini")
    (tmp_path / "app.conf").write_text(ini.replace("/var/lib/shop", str(tmp_path)))
    publish, listen = blocks("docs/first-steps.md", "python")
    said = talk(publish + listen, tmp_path, environment, 3)
    # The listener may print before or after this line.
    said.remove("Enter ends it\n")
    assert [line.split(" ", 1)[1].strip() for line in said] == [
        "order.paid {'order': 17, 'total': '9.90'}",
        "order.paid {'order': 18}",
    ]


def test_the_sums_of_the_demonstration() -> None:
    """The output shown in the docs has the counts of the day that is published."""
    _, parser, _ = main.App().find(["demo"])
    day = traffic.make_traffic(
        parser.get_default("count"), datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    )
    types = Counter(str(each.event_type) for each in (*day.on_time, *day.late))
    sums = {
        "duplicate": len(day.duplicates),
        "malformed": len(sandbox.MALFORMED_VALUES),
        "late": len(day.late),
    }
    agreeing = outcome.Outcome(types, types, types, sums, sums, {"total": types.total(), **sums}, lost=0)
    assert agreeing.counts_agree()
    [shown] = [block for block in blocks("docs/first-steps.md", "console") if "$ " not in block]
    assert shown.splitlines() == list(agreeing.lines())


def test_the_commands_of_the_first_steps(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    shown = [block for block in blocks("docs/first-steps.md", "console") if "$ " in block]
    commands = [line.removeprefix("$ ") for block in shown for line in block.splitlines()]
    said = {}
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "notifier-kafka"
        command_line = [sys.executable, "-m", "notifier_kafka.cli.main", *arguments]
        if arguments == ["tail"]:
            said["tail"] = first_line(command_line, tmp_path, environment)
            continue
        done = subprocess.run(
            command_line,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said[arguments[0]] = done.stdout
    for name in ("listen", "tail"):
        assert '"payload": {"order": 17}' in said[name]
    assert "notifications.info" in said["topics"]
    assert len(said) == 5
