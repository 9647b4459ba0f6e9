"""Other people's programs, in environments of their own, as children that work when they are told to.

An environment is made once, in the user's cache, by an ordinary pip. A child reads lines of
its standard input, ``work 1000``, and answers each with a line of JSON.
"""

import fcntl
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.bare_clients import Void
from notifier_kafka.jvm import cache_directory

ROOT = Path(__file__).parents[1]
REQUIREMENTS = {
    "oslo_messaging": ["oslo.messaging[kafka]>=18,<19"],
    "aiokafka": ["aiokafka", "orjson"],
    "faststream": ["faststream[confluent]", "orjson"],
}


class Child:
    """A program of ``benchmarks/programs``; ready when it is made."""

    def __init__(self, program: str, *arguments: str, python: str | Path = sys.executable) -> None:
        self._name = program
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", f"benchmarks.programs.{program}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self.answer()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, *words: object) -> None:
        """Give the child something to do."""
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait until it is done."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._said.seek(0)
            last = self._said.read().strip().splitlines()[-1:] or ["it said nothing"]
            self.close()
            raise Void(f"{self._name} died: {last[0]}")
        return json.loads(line)

    def ask(self, *words: object) -> Any:
        """Give it something to do, and wait."""
        self.tell(*words)
        return self.answer()

    def cpu(self) -> float:
        """Return the seconds of the processor that it has had."""
        seconds: float = self.ask("cpu", 0)
        return seconds

    def close(self) -> None:
        """End it; idempotent."""
        self._process.kill()
        with self._process:
            pass
        self._said.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def start(peer: str, *arguments: str) -> Child:
    """Start a peer in its environment."""
    return Child(f"{peer}_peer", *arguments, python=python(peer))


def contestant(name: str, child: Child, *, prepared: bool = False) -> measure.Contestant:
    """Let a child take part. ``prepared``: it has something to do before and after its work."""

    def prepare(count: int) -> None:
        child.ask("prepare", count)

    def finish() -> None:
        child.ask("finish", 0)

    def work(count: int) -> float | None:
        seconds: float | None = child.ask("work", count)
        return seconds

    made = measure.Contestant(name, work, cpu=child.cpu)
    return made._replace(prepare=prepare, finish=finish) if prepared else made


def python(peer: str) -> Path:
    """Return the interpreter of an environment, which is made where there is none."""
    version = f"py{sys.version_info.major}.{sys.version_info.minor}"
    home = cache_directory.directory("benchmarks") / f"{peer}-{version}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            _install(home, REQUIREMENTS[peer])
    return home / "bin" / "python"


def versions(peer: str) -> dict[str, str]:
    """Say what an environment holds."""
    found = _run([python(peer), "-m", "pip", "list", "--format", "json"])
    names = {"oslo.messaging", "confluent-kafka", "aiokafka", "faststream"}
    return {each["name"]: each["version"] for each in json.loads(found) if each["name"] in names}


def _install(home: Path, requirements: Sequence[str]) -> None:
    measure.say(f"installing {', '.join(requirements)}")
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    _run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements])
    (home / "ready").touch()


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Void(f"{said[-1]}; --no-peers measures without what is installed")
    return done.stdout
