"""Processes of the workload, the bus that they share, and how to wait for them."""

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

# A process finds this package from any directory and in any namespace.
ROOT = pathlib.Path(__file__).parents[1]
PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
ENVIRONMENT = os.environ | {"PYTHONPATH": PATH}
# A soak has a larger workload and longer timeouts: see CONTRIBUTING.md.
SOAK_FACTOR = 20 if os.environ.get("NOTIFIER_KAFKA_SOAK") else 1
TIMEOUT_SECONDS = 120.0 * SOAK_FACTOR
SESSION_SECONDS = 4.0  # the session timeout of a consumer on Kafka
BATCH_RECORDS = 50  # of one poll; a listener may repeat as many after a fault


def wait_until(
    condition: Callable[[], object], what: Callable[[], str] | str, timeout: float = TIMEOUT_SECONDS
) -> None:
    """Wait until a condition holds; ``what`` describes it in the error."""
    deadline = time.monotonic() + timeout
    while True:
        begun = time.monotonic()
        if condition():
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting for {what if isinstance(what, str) else what()}")
        # Reading long histories must not take the processor from the processes that write them.
        time.sleep(max(0.05, 3 * (time.monotonic() - begun)))


@dataclasses.dataclass(frozen=True)
class Bus:
    """The log under test. ``log`` is the file of SQLite; ``prefix`` starts a command in a namespace."""

    name: str
    url: str
    log: pathlib.Path | None = None
    prefix: tuple[str, ...] = ()


def kafka_bus(url: str, client: str, **options: Any) -> Bus:
    """Return the bus of a cluster, with options of the driver."""
    settings = {"client": client, "session_timeout": SESSION_SECONDS, "topic_partitions": 4} | options
    return Bus(client, f"{url}/?" + "&".join(f"{name}={value}" for name, value in settings.items()))


class WorkloadProcess:
    """A process that writes a history."""

    def __init__(self, name: str, command: list[str], directory: pathlib.Path) -> None:
        self.name = name
        self.history = directory / f"{name}.history"
        self._stderr = directory / f"{name}.stderr"
        self._counts: dict[str, tuple[int, int]] = {}
        self.killed = self._terminated = False
        with self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(command, stdout=stderr, stderr=stderr, env=ENVIRONMENT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Send SIGTERM, but only once: at its end the interpreter handles no second one."""
        if not self._terminated and self.is_running():
            self._terminated = True
            self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.killed = True
        self._process.kill()
        self._process.wait()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def count(self, event_type: str) -> int:
        """Count the events of a type; reads only what is new."""
        position, count = self._counts.get(event_type, (0, 0))
        with contextlib.suppress(FileNotFoundError), self.history.open("rb") as file:
            file.seek(position)
            whole = file.read().rpartition(b"\n")[0]
            if whole:
                position += len(whole) + 1
                count += whole.count(b'{"type": "%s"' % event_type.encode())
        self._counts[event_type] = position, count
        return count

    def wait_for(self, event_type: str, count: int) -> None:
        """Wait until the history has so many events of a type."""

        def enough() -> bool:
            assert self.is_running() or self.count(event_type) >= count, (
                f"{self.name} ended: {self.stderr_tail()}"
            )
            return self.count(event_type) >= count

        wait_until(
            enough,
            lambda: (
                f"{count} {event_type} of {self.name}, has {self.count(event_type)}: {self.stderr_tail()}"
            ),
        )

    def wait_for_exit(self) -> None:
        try:
            code = self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end: {self.stderr_tail()}") from None
        assert self.killed or code == 0, f"{self.name} ended with {code}: {self.stderr_tail()}"

    def stderr_tail(self) -> str:
        return self._stderr.read_text(errors="replace")[-3000:]

    def destroy(self) -> None:
        """Kill it, also when it is stopped or has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()


def is_stopped(pid: int) -> bool:
    stats = [each.read_text() for each in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


def is_unlocked(path: pathlib.Path) -> bool:
    with path.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True
