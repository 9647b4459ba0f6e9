"""What the README and the first steps show does what they say."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DEADLINE = 60.0


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}


def talk(program: str, directory: pathlib.Path, environment: dict[str, str], lines: int) -> list[str]:
    """Run a program; press Enter when it has said so many lines. Return all that it said."""
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


def test_the_program_of_the_readme(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    [program] = blocks("README.md", "python")
    said = talk(program, tmp_path, environment, 2)
    assert sorted(said) == ["Enter ends it\n", "order.paid {'order': 17}\n"]
    assert (tmp_path / "notifications.db").exists()


def test_the_programs_of_the_first_steps(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    [ini] = blocks("docs/first-steps.md", "ini")
    (tmp_path / "app.conf").write_text(ini.replace("/var/lib/shop", str(tmp_path)))
    publish, listen = blocks("docs/first-steps.md", "python")
    said = talk(publish + listen.replace("    ...", "    input()"), tmp_path, environment, 2)
    assert [line.split(" ", 1)[1].strip() for line in said] == [
        "order.paid {'order': 17, 'total': '9.90'}",
        "order.paid {'order': 18}",
    ]


def test_the_commands_of_the_first_steps(tmp_path: pathlib.Path, environment: dict[str, str]) -> None:
    shown = [block for block in blocks("docs/first-steps.md", "console") if "$ " in block]
    commands = [line.removeprefix("$ ") for block in shown for line in block.splitlines()]
    said = {}
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "notifier-kafka"
        if arguments == ["tail"]:
            continue  # goes on until it is interrupted
        done = subprocess.run(
            [sys.executable, "-m", "notifier_kafka.cli.main", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said[arguments[0]] = done.stdout
    assert '"payload": {"order": 17}' in said["listen"]
    assert "notifications.info" in said["topics"]
    assert len(said) == 4
