"""The live view of an SQLite log: a screen on a terminal, plain lines and objects elsewhere."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import termios
import time
from typing import Any

import pytest

TIMEOUT_SECONDS = 60.0
HOSTILE = "evil\x1b[2J\x9b\u202e"


class Log:
    """Runs the program on a new log."""

    def __init__(self, home: pathlib.Path) -> None:
        self.command = [sys.executable, "-m", "notifier_kafka.cli.main"]
        self.command += ["--transport-url", f"sqlite:///{home}/log.db"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm"}

    def run(self, *arguments: str) -> str:
        ended = subprocess.run(
            [*self.command, *arguments], env=self.environment, capture_output=True, text=True, check=True
        )
        return ended.stdout

    def start(self, *arguments: str, stdout: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *arguments], env=self.environment, stdout=stdout)


@pytest.fixture
def log(tmp_path: pathlib.Path) -> Log:
    made = Log(tmp_path)
    made.run("send", "0", "--event-type", "before")
    made.run("listen", "--pool", "accounting", "--from", "beginning", "--max", "1")
    return made


def feed(log: Log) -> None:
    log.run("send", "1", "--event-type", "order.paid")
    log.run("send", "1", "--event-type", HOSTILE, "--priority", "error")


def test_objects_for_programs(log: Log, tmp_path: pathlib.Path) -> None:
    seen = tmp_path / "seen"
    with seen.open("w") as stream:
        top = log.start("top", "--json", "--interval", "0.5", stdout=stream)
    try:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not seen.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        feed(log)
        while True:
            assert time.monotonic() < deadline, seen.read_text()
            looks = [
                json.loads(line) for line in seen.read_text().splitlines(keepends=True) if line[-1] == "\n"
            ]
            if len(looks[-1]["types"]) == 2:
                break
            time.sleep(0.05)
        top.send_signal(signal.SIGINT)
        assert top.wait(TIMEOUT_SECONDS) == 130
    finally:
        top.kill()
        top.wait()
    assert looks[0]["types"] == []
    types = {each["event_type"]: each for each in looks[-1]["types"]}
    assert (types["order.paid"]["total"], types["order.paid"]["errors"]) == (1, 0)
    assert (types[HOSTILE]["total"], types[HOSTILE]["errors"]) == (1, 1)
    assert sum(each["rate"] for look in looks for each in look["types"]) > 0
    assert looks[-1]["groups"] == [{"name": "accounting", "members": 0, "lag": 1}]


def test_lines_where_there_is_no_terminal(log: Log) -> None:
    lines = log.run("top", "--count", "1", "--interval", "0.5").splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "all 0.0/s total 0 errors 0 malformed 0",
        "group accounting members 0 lag 0",
    ]


@pytest.mark.parametrize(
    ("form", "header"), [("csv", '"at","event_type","rate","total","errors"\n'), ("value", "")]
)
def test_a_line_for_each_type(log: Log, tmp_path: pathlib.Path, form: str, header: str) -> None:
    seen = tmp_path / "seen"
    with seen.open("w") as stream:
        top = log.start("top", "-f", form, "--interval", "0.5", stdout=stream)
    try:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while seen.read_text().count("order.paid") < 2:
            assert time.monotonic() < deadline, seen.read_text()
            feed(log)
    finally:
        top.kill()
        top.wait()
    assert seen.read_text().startswith(header or "20")
    for line in seen.read_text().splitlines():
        assert line.isprintable()


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_screen_on_a_terminal_that_nobody_else_steers(log: Log, no_color: str) -> None:
    log.environment["NO_COLOR"] = no_color
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (12, 90))
    top = log.start("top", "--interval", "0.5", stdout=theirs)
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        fed = False
        while not all(each in shown for each in (b"order.paid", b"evil", "…".encode())):
            assert time.monotonic() < deadline, shown
            shown += os.read(ours, 65536)
            if b"all 0.0/s" in shown and not fed:
                fed = True
                feed(log)
                log.run("send", "1", "--event-type", "long." * 20)
        top.send_signal(signal.SIGTERM)
        assert top.wait(TIMEOUT_SECONDS) == 0
    finally:
        top.kill()
        top.wait()
        os.close(ours)
    # The last part may end within a character.
    text = shown.decode(errors="replace")
    assert "evil\\x1b[2J\\x9b\\u202e" in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert ("\x1b[31m" in text) == (not no_color)
    for code in text.split("\x1b[")[1:]:
        assert code.startswith(("H", "K", "J", "31m", "0m"))
    assert "accounting" in text
    # A name that is longer than its column ends in an ellipsis.
    assert f"{('long.' * 20)[:58]}…" in text
    assert max(len(screen.split("\r\n")) for screen in text.split("\x1b[H")) <= 12
