"""One node of the local cluster: its files, its process, and when it is ready."""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from notifier_kafka.errors import TransportUnavailable

from .broker_users import write_private
from .process import Process, environment, spawn

# The last line of a start: the broker is registered, unfenced and takes clients.
_READY = "Kafka Server started"
_TROUBLE = re.compile(
    r" (ERROR|FATAL) |^Exception in|^Error|^Caused by|^[a-z.]+\.[A-Z]\w*(Exception|Error)\b"
)
_BEAT = 0.05
_FORMAT_TIMEOUT = 60.0

# Half the processor time of a start; less throughput afterwards.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
_LOG4J = """status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/server.log
appender.file.filePattern = {directory}/server.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %m (%c{{1}})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


class Runtime(NamedTuple):
    """What runs a broker: a Java, and where Apache Kafka's classes are."""

    java: Path
    classpath: str


class Node:
    """A broker that is a controller too. Its data outlive its process."""

    def __init__(self, directory: Path, number: int, process: Process | None, *, leashed: bool) -> None:
        self.directory = directory
        self.number = number
        self.process = process
        self._leashed = leashed
        self._read_from = 0

    @property
    def log(self) -> Path:
        """The log file of the broker."""
        return self.directory / "server.log"

    @property
    def data(self) -> Path:
        """Where the broker keeps its data."""
        return self.directory / "data"

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write the files that the node starts with."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = "".join(f"{name}={_escape(value)}\n" for name, value in properties.items())
        write_private(self.directory / "server.properties", text)
        write_private(
            self.directory / "log4j2.properties", _LOG4J.format(directory=_escape(str(self.directory)))
        )

    def format(self, runtime: Runtime, cluster_id: str, arguments: list[str]) -> None:
        """Prepare the data directory. One that is prepared is left as it is."""
        if (self.data / "meta.properties").exists():
            return
        command = self._command(runtime, "kafka.tools.StorageTool", "format", "--cluster-id", cluster_id)
        command += ["--config", str(self.directory / "server.properties"), *arguments]
        command[1:1] = _SHORT_LIVED
        # By a file, because everybody may read the arguments of a process, passwords among them.
        given = self.directory / "format.arguments"
        write_private(given, "\n".join(map(_quote, command[1:])))
        try:
            ran = subprocess.run(  # noqa: S603 - built here
                [command[0], f"@{given}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environment(),
                text=True,
                timeout=_FORMAT_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TransportUnavailable(f"node {self.number} did not prepare {self.data} in time") from error
        finally:
            given.unlink()
        if ran.returncode:
            said = _trouble((ran.stderr + ran.stdout).splitlines())
            raise TransportUnavailable(f"node {self.number} cannot prepare {self.data}: {said}")

    def launch(self, runtime: Runtime) -> Process:
        """Start the process, without waiting until the broker takes clients."""
        with contextlib.suppress(FileNotFoundError):
            self._read_from = self.log.stat().st_size
        command = self._command(runtime, "kafka.Kafka", str(self.directory / "server.properties"))
        self.process = spawn(command, self.directory / "output", leashed=self._leashed)
        return self.process

    def wait_ready(self, deadline: float) -> None:
        """Wait until the broker takes clients, at most until ``deadline`` of the monotonic clock."""
        while not self._is_ready():
            if not (self.process and self.process.alive()):
                raise TransportUnavailable(f"node {self.number} ended while starting: {self._cause()}")
            if time.monotonic() > deadline:
                raise TransportUnavailable(f"node {self.number} is not ready in time: {self._cause()}")
            time.sleep(_BEAT)

    def alive(self) -> bool:
        """Tell whether the process runs; it may not be ready yet."""
        return self.process is not None and self.process.alive()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; after a deadly one wait for the end."""
        if self.process and self.process.send(number) and number == signal.SIGKILL:
            self.process.wait(_FORMAT_TIMEOUT)

    def end(self, timeout: float) -> None:
        """Wait for the end of a process that was asked to stop; kill it after ``timeout``."""
        if self.process and not self.process.wait(timeout):
            # Nothing acknowledged is lost by that, the next start only takes longer.
            self.kill()

    def _command(self, runtime: Runtime, main: str, *arguments: str) -> list[str]:
        return [
            str(runtime.java),
            # Three of them share the machine with what uses them.
            *("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", *(_SHORT_LIVED if self._leashed else ())),
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            *("-cp", runtime.classpath, main, *arguments),
        ]

    def _lines(self) -> list[str]:
        try:
            with self.log.open("rb") as file:
                # A file that rolled over is shorter than it was.
                file.seek(self._read_from if self._read_from <= self.log.stat().st_size else 0)
                return file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []

    def _is_ready(self) -> bool:
        return any(_READY in line for line in self._lines())

    def _cause(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            output = (self.directory / "output").read_text("utf-8", "replace").splitlines()
            return f"{_trouble(self._lines() + output)}; see {self.log}"
        return f"see {self.log}"


def _trouble(lines: list[str]) -> str:
    telling = [line.strip() for line in lines if _TROUBLE.search(line)]
    return (telling or [line.strip() for line in lines if line.strip()] or ["it said nothing"])[-1]


def _quote(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escape(value: str) -> str:
    # Java reads the files of properties as Latin-1.
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[n : n + 2]) for n in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
