"""What makes brokers start faster, run for real: it is made once, and nothing depends on it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from notifier_kafka.jvm import jars, java
from notifier_kafka_drivers.kafka.local import fast_start
from notifier_kafka_drivers.kafka.local.broker_users import Security
from notifier_kafka_drivers.kafka.local.cluster import OPEN, Cluster
from notifier_kafka_drivers.kafka.local.java_command import Runtime

PREPARE = (
    "import sys\n"
    "from pathlib import Path\n"
    "from notifier_kafka_drivers.kafka.local import fast_start\n"
    "from notifier_kafka_drivers.kafka.local.java_command import Runtime\n"
    "print(fast_start.prepare(Runtime(Path(sys.argv[1]), sys.argv[2])))\n"
)


@pytest.fixture
def runtime() -> Runtime:
    """Java and the jars, from the cache of the user."""
    return Runtime(java.find(java.KAFKA).path, ":".join(map(str, jars.fetch(jars.KAFKA))))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> Path:
    """A cache of the test's own, with the jars of the user's."""
    home = tmp_path / "the cache"
    (home / "notifier-kafka").mkdir(parents=True)
    (home / "notifier-kafka/jars").symlink_to(Path(runtime.classpath.split(":")[0]).parents[1])
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "notifier-kafka/fast-start"


def kept(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.is_dir()]


def starts(directory: Path, security: Security = OPEN) -> str:
    """Start and stop a broker; return what its JVM printed."""
    cluster = Cluster(directory, security=security, ends_with_parent=True)
    cluster.start()
    assert cluster.status()[0]["state"] == "running"
    cluster.stop(0.0)
    return (directory / "node-1/output").read_text()


def test_it_is_made_once_and_a_broken_archive_stops_no_broker(
    cache: Path, runtime: Runtime, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PREPARE, str(runtime.java), runtime.classpath]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate()[0] for process in both}
    (made,) = kept(cache)
    prepared = fast_start.prepare(runtime)
    assert said == {f"{prepared}\n"}
    assert prepared.class_archive == made / "classes.jsa"
    assert prepared.bootstrap_checkpoint == made / "bootstrap.checkpoint"
    # With what was made, and for SCRAM users with a format of its own.
    assert "[warning][cds]" not in starts(tmp_path / "one")
    starts(tmp_path / "scram", Security(sasl="scram"))
    maps = subprocess.run(
        [*prepared.command("-version")[:-3], "-Xlog:cds", "-cp", runtime.classpath, "-version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(made) in maps.stdout

    archive = made / "classes.jsa"
    archive.chmod(0o600)
    whole = archive.read_bytes()
    for broken in (whole[: len(whole) // 2], b"no archive", b""):
        archive.write_bytes(broken)
        starts(tmp_path / f"with {len(broken)} bytes")


def test_a_java_that_cannot_is_asked_once_a_day(cache: Path, runtime: Runtime, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho >> '{calls}'\nexit 1\n")
    program.chmod(0o755)
    other = Runtime(program, runtime.classpath)
    for _ in range(2):
        assert fast_start.prepare(other) == other
    assert calls.read_text().count("\n") == 1
    (failed,) = kept(cache)
    os.utime(failed, (0, time.time() - 25 * 3600))
    forgotten = cache / "of another build"
    forgotten.mkdir()
    os.utime(forgotten, (0, time.time() - 31 * 24 * 3600))
    assert fast_start.prepare(other) == other
    assert calls.read_text().count("\n") == 2
    assert kept(cache) == [failed]


def test_only_the_newest_builds_are_kept(cache: Path, runtime: Runtime, tmp_path: Path) -> None:
    for number in range(6):
        program = tmp_path / f"java-{number}"
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
        fast_start.prepare(Runtime(program, runtime.classpath))
        made = fast_start._kept(Runtime(program, runtime.classpath))
        os.utime(made, (0, time.time() - 3600 + number))
        if number == 0:
            first = made
            at_work = cache / "0.part-of another process"
            at_work.mkdir()
    assert len(kept(cache)) == 4 + 1
    assert made in kept(cache)
    assert at_work in kept(cache)
    assert first not in kept(cache)


def test_a_cache_that_cannot_be_written_changes_nothing(
    cache: Path, runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("not a directory")
    assert fast_start.prepare(runtime) == runtime


def test_another_build_of_java_or_of_a_jar_gets_its_own(tmp_path: Path) -> None:
    program, jar = tmp_path / "java", tmp_path / "one.jar"
    program.touch()
    jar.touch()
    runtime = Runtime(program, str(jar))
    first = fast_start._kept(runtime)
    assert fast_start._kept(runtime) == first
    os.utime(program, (1, 1))
    second = fast_start._kept(runtime)
    jar.write_text("other")
    assert len({first, second, fast_start._kept(runtime)}) == 3
