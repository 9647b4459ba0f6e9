"""Child processes: our own programs, and peers, which are other libraries in environments of their own.

An environment is made once by pip, in the user's cache. A child reads commands from its standard
input, such as ``work 1000``, and answers each with a line of JSON.
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
from benchmarks.bare_clients import InvalidMeasurement
from notifier_kafka.jvm import cache_directory

ROOT = Path(__file__).parents[1]
REQUIREMENTS = {
    "oslo_messaging": ["oslo.messaging[kafka]>=18,<19"],
    "aiokafka": ["aiokafka", "orjson"],
    "faststream": ["faststream[confluent]", "orjson"],
}


class Child:
    """A program of ``benchmarks/programs``; it is ready when the constructor returns."""

    def __init__(self, program: str, *arguments: str, python: str | Path = sys.executable) -> None:
        self._name = program
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", f"benchmarks.programs.{program}", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        self.receive()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *command: object) -> None:
        """Send a command."""
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, command)) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """Wait for the answer."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            last = self._stderr.read().strip().splitlines()[-1:] or ["it printed nothing"]
            self.close()
            raise InvalidMeasurement(f"{self._name} died: {last[0]}")
        return json.loads(line)

    def request(self, *command: object) -> Any:
        """Send a command, and wait for the answer."""
        self.send(*command)
        return self.receive()

    def cpu(self) -> float:
        """Return the seconds of CPU time that it has used."""
        seconds: float = self.request("cpu", 0)
        return seconds

    def close(self) -> None:
        """End it; idempotent."""
        self._process.kill()
        with self._process:
            pass
        self._stderr.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def start(peer: str, *arguments: str) -> Child:
    """Start a peer in its environment."""
    return Child(f"{peer}_peer", *arguments, python=python(peer))


def contestant(name: str, child: Child, *, prepared: bool = False) -> measure.Contestant:
    """Make a child a contestant. ``prepared``: it has commands for before and after its work."""

    def prepare(count: int) -> None:
        child.request("prepare", count)

    def finish() -> None:
        child.request("finish", 0)

    def work(count: int) -> float | None:
        seconds: float | None = child.request("work", count)
        return seconds

    made = measure.Contestant(name, work, cpu=child.cpu)
    return made._replace(prepare=prepare, finish=finish) if prepared else made


def python(peer: str) -> Path:
    """Return the interpreter of an environment; make the environment where it is missing."""
    version = f"py{sys.version_info.major}.{sys.version_info.minor}"
    home = cache_directory.directory("benchmarks") / f"{peer}-{version}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            _install(home, REQUIREMENTS[peer])
    return home / "bin" / "python"


def versions(peer: str) -> dict[str, str]:
    """Return the versions of the libraries in an environment."""
    found = _run([python(peer), "-m", "pip", "list", "--format", "json"])
    names = {"oslo.messaging", "confluent-kafka", "aiokafka", "faststream"}
    return {each["name"]: each["version"] for each in json.loads(found) if each["name"] in names}


def _install(home: Path, requirements: Sequence[str]) -> None:
    measure.report_progress(f"installing {', '.join(requirements)}")
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    _run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements])
    (home / "ready").touch()


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise InvalidMeasurement(f"{said[-1]}; --no-peers leaves the peers out")
    return done.stdout
