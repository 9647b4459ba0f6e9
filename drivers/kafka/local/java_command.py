"""The command lines of Kafka's Java programs: which Java, which classes, which options."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .broker_users import write_private
from .process import environment

# Half the processor time of a start; less throughput afterwards.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
# Small, because three brokers share the machine with the programs that use them.
_MEMORY = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class Runtime:
    """A Java, the classes of Apache Kafka, and what makes a start faster, where it exists."""

    java: Path
    classpath: str
    class_archive: Path | None = None
    bootstrap_checkpoint: Path | None = None

    def command(self, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """Build the command that runs the class ``main``; ``options`` are the JVM's."""
        return [
            str(self.java),
            *_MEMORY,
            *self._archive_options(),
            *options,
            "-cp",
            self.classpath,
            main,
            *arguments,
        ]

    def _archive_options(self) -> tuple[str, ...]:
        # auto: a Java that cannot use the archive starts without it.
        return (f"-XX:SharedArchiveFile={self.class_archive}", "-Xshare:auto") if self.class_archive else ()


def run(command: list[str], argument_file: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a Java program to its end. Raises ``subprocess.TimeoutExpired`` when that takes too long."""
    # In a file, because every user can read the arguments of a process, and some are passwords.
    write_private(argument_file, "\n".join(map(_quote, command[1:])))
    try:
        return subprocess.run(  # noqa: S603 - built above
            [command[0], f"@{argument_file}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            text=True,
            timeout=timeout,
            check=False,
        )
    finally:
        argument_file.unlink()


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a file of Java properties, which may hold passwords."""
    write_private(path, "".join(f"{name}={escape(value)}\n" for name, value in properties.items()))


def escape(value: str) -> str:
    """Spell a value for a file of Java properties, which Java reads as Latin-1."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[n : n + 2]) for n in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def _quote(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
