"""A child process that a test may suspend or kill."""

import pathlib
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence


class Child:
    """A process of ``notifier_kafka.testing.child`` that the suite started."""

    def __init__(self, arguments: Sequence[str], directory: pathlib.Path) -> None:
        self._out = directory / f"{uuid.uuid4().hex}.out"
        command = [sys.executable, "-m", "notifier_kafka.testing.child", *arguments]
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out)  # noqa: S603

    def output(self) -> str:
        return self._out.read_text()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send_signal(self, sign: signal.Signals) -> None:
        self._process.send_signal(sign)
        if sign is signal.SIGKILL:
            self._process.wait()

    def resume(self) -> None:
        """Write the line that the process waits for."""
        if self._process.stdin:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def end(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        if self.is_alive():
            self._process.kill()
        self._process.wait()
