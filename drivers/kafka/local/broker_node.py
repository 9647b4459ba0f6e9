"""One node of the local cluster: its files, its process, and whether it is ready."""

import contextlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from notifier_kafka.errors import TransportUnavailable

from . import java_command
from .broker_users import write_private
from .java_command import SHORT_LIVED, Runtime
from .process import Process, spawn
from .saved_state import random_id

# Logged at the end of a start, when the broker is registered, unfenced and accepts clients.
_READY = "Kafka Server started"
_ERROR_LINE = re.compile(
    r" (ERROR|FATAL) |^Exception in|^Error|^Caused by|^[a-z.]+\.[A-Z]\w*(Exception|Error)\b"
)
_LOG_CHECK_SECONDS = 0.05
_FORMAT_TIMEOUT_SECONDS = 60.0
_KILL_TIMEOUT_SECONDS = 60.0

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
# Properties that a user may set and that change what the format writes, or where.
_FORMAT_PROPERTIES = ("log.dir", "metadata.", "node.", "broker.id", "process.", "controller.", "unstable.")
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


class BrokerNode:
    """A broker that is a controller too. Its data stay when its process ends."""

    def __init__(
        self, directory: Path, number: int, process: Process | None, *, ends_with_parent: bool
    ) -> None:
        self.directory = directory
        self.number = number
        self.process = process
        self._ends_with_parent = ends_with_parent
        self._read_from = 0

    @property
    def log(self) -> Path:
        """The log file of the broker."""
        return self.directory / "server.log"

    @property
    def data(self) -> Path:
        """The directory of the broker's data."""
        return self.directory / "data"

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write the files that the node starts with."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        java_command.write_properties(self._properties, properties)
        log4j = _LOG4J.format(directory=java_command.escape(str(self.directory)))
        write_private(self._log4j, log4j)

    def format(self, runtime: Runtime, cluster_id: str, arguments: list[str]) -> None:
        """Prepare the data directory with ``StorageTool``, unless it is prepared."""
        if self._is_formatted():
            return
        command = runtime.command(
            *("kafka.tools.StorageTool", "format", "--cluster-id", cluster_id),
            *("--config", str(self._properties), *arguments),
            options=(*SHORT_LIVED, f"-Dlog4j2.configurationFile={self._log4j}"),
        )
        try:
            ran = java_command.run(command, self.directory / "format.arguments", _FORMAT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise TransportUnavailable(f"node {self.number} did not format {self.data} in time") from error
        if ran.returncode:
            cause = _error_line((ran.stderr + ran.stdout).splitlines())
            raise TransportUnavailable(f"node {self.number} cannot format {self.data}: {cause}")

    def format_from(self, checkpoint: Path, cluster_id: str) -> None:
        """Prepare the data directory as the ``StorageTool`` that wrote ``checkpoint``, but without a JVM."""
        if self._is_formatted():
            return
        self.data.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkpoint, self.data / BOOTSTRAP_CHECKPOINT)
        lines = (
            f"node.id={self.number}",
            f"directory.id={random_id()}",
            "version=1",
            f"cluster.id={cluster_id}",
        )
        part = self.data / "meta.properties.part"
        part.write_text("\n".join(("#", *lines, "")), "utf-8")
        # Last and in one step, because it is the mark of a directory that is formatted.
        part.replace(self._meta)

    def launch(self, runtime: Runtime, *options: str) -> Process:
        """Start the process, without waiting until it is ready; ``options`` are for the JVM."""
        with contextlib.suppress(FileNotFoundError):
            self._read_from = self.log.stat().st_size
        options += ("-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={self._log4j}")
        options += SHORT_LIVED if self._ends_with_parent else ()
        command = runtime.command("kafka.Kafka", str(self._properties), options=options)
        self.process = spawn(command, self.directory / "output", ends_with_parent=self._ends_with_parent)
        return self.process

    def wait_ready(self, deadline: float) -> None:
        """Wait until the broker accepts clients, at most until ``deadline`` of the monotonic clock."""
        while not self._is_ready():
            if not (self.process and self.process.is_alive()):
                raise TransportUnavailable(f"node {self.number} ended while starting: {self._cause()}")
            if time.monotonic() > deadline:
                raise TransportUnavailable(f"node {self.number} was not ready in time: {self._cause()}")
            time.sleep(_LOG_CHECK_SECONDS)

    def is_alive(self) -> bool:
        """Tell whether the process runs, ready or not."""
        return self.process is not None and self.process.is_alive()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; after SIGKILL wait for the end."""
        if self.process and self.process.send(number) and number == signal.SIGKILL:
            self.process.wait(_KILL_TIMEOUT_SECONDS)

    def end(self, timeout: float) -> None:
        """Wait for the end of a process that was told to stop; kill it after ``timeout``."""
        if self.process and not self.process.wait(timeout):
            # Acknowledged records are not lost; only the next start takes longer.
            self.kill()

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def _log4j(self) -> Path:
        return self.directory / "log4j2.properties"

    @property
    def _meta(self) -> Path:
        return self.data / "meta.properties"

    def _is_formatted(self) -> bool:
        return self._meta.exists()

    def _lines(self) -> list[str]:
        try:
            with self.log.open("rb") as file:
                # A log that was rolled over is shorter than before.
                file.seek(self._read_from if self._read_from <= self.log.stat().st_size else 0)
                return file.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []

    def _is_ready(self) -> bool:
        return any(_READY in line for line in self._lines())

    def _cause(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            output = (self.directory / "output").read_text("utf-8", "replace").splitlines()
            return f"{_error_line(self._lines() + output)}; see {self.log}"
        return f"see {self.log}"


def has_usual_format(properties: Mapping[str, str]) -> bool:
    """Tell whether a node with these properties of the user's is formatted as one without them."""
    return not any(name.startswith(_FORMAT_PROPERTIES) for name in properties)


def _error_line(lines: list[str]) -> str:
    errors = [line.strip() for line in lines if _ERROR_LINE.search(line)]
    return (errors or [line.strip() for line in lines if line.strip()] or ["it printed nothing"])[-1]
