"""Fetching jars. The tool is a program of the test's that does what Maven would; the sums are real.

That the lists are right, and that Ivy and Maven fetch them, is shown by every broker of
``tests/kafka``: a cluster starts from these jars.
"""

import concurrent.futures
import hashlib
import os
import pty
import shutil
import sys
from pathlib import Path

import pytest

from notifier_kafka.cli import jar_download
from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import jars
from tests.shared import terminal

NAME = jars.KAFKA_TOOLS
(TOOLS,) = jars.listed(NAME)
CONTENT = b"the jar\n"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, a list whose jar the test can make, neither PySpark nor Maven."""
    (tmp_path / "programs").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for used in ("cp", "mkdir", "sleep"):
        (tmp_path / "programs" / used).symlink_to(str(shutil.which(used)))
    monkeypatch.setenv("PATH", f"{tmp_path}/programs")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "lists").mkdir()
    sum_ = hashlib.sha256(CONTENT).hexdigest()
    (tmp_path / "lists" / f"{NAME}.sha256").write_text(f"{sum_}  org.example:kafka-tools:4.3.0\n")
    monkeypatch.setattr(jars, "LISTS", tmp_path / "lists")
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)  # imported, it is found without a path
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not (Path(entry) / "pyspark").exists()])


def maven(tmp_path: Path, action: str) -> Path:
    """Install a Maven that notes each run, and its POM, before it acts."""
    program = tmp_path / "programs" / "mvn"
    program.write_text(
        f"#!/bin/sh\necho run >> {tmp_path}/runs\ncp pom.xml {tmp_path}/pom.xml\nmkdir out\n{action}\n"
    )
    program.chmod(0o755)
    return program


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


DELIVER = "mkdir cache\necho 'the jar' > cache/kafka-tools-4.3.0.jar\ncp cache/*.jar out"


def test_jars_are_fetched_once_and_verified(tmp_path: Path) -> None:
    maven(tmp_path, DELIVER)
    seen: list[tuple[int, int]] = []
    (first,) = jars.fetch(NAME, progress=lambda there, wanted: seen.append((there, wanted)))
    assert first == tmp_path / "cache" / "notifier-kafka" / "jars" / NAME / "kafka-tools-4.3.0.jar"
    assert first.read_bytes() == CONTENT
    assert jars.fetch(NAME) == [first]
    assert runs(tmp_path) == 1
    assert seen[-1] == (1, 1)
    pom = (tmp_path / "pom.xml").read_text()
    assert "<groupId>org.example</groupId><artifactId>kafka-tools</artifactId><version>4.3.0" in pom
    # What remains is the jars: no half-filled directory, no Maven home.
    assert sorted(path.name for path in first.parent.parent.iterdir()) == [NAME, f"{NAME}.lock"]


def test_a_person_sees_a_bar_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(tmp_path, DELIVER)
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setenv("TERM", "xterm")
        jar_download.fetch(NAME)
        jar_download.fetch(NAME)
        monkeypatch.undo()
    shown = b"".join(terminal.shown(ours)).decode()
    os.close(ours)
    assert "fetch      " + "█" * 30 in shown
    assert shown.count("1 jars in ") == 1


def test_a_damaged_jar_is_fetched_again(tmp_path: Path) -> None:
    maven(tmp_path, DELIVER)
    (jar,) = jars.fetch(NAME)
    jar.write_bytes(b"cut of")
    assert jars.missing(NAME) == jars.listed(NAME)
    assert jars.fetch(NAME)[0].read_bytes() == CONTENT
    assert runs(tmp_path) == 2


def test_another_sum_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    maven(tmp_path, "echo 'another jar' > out/kafka-tools-4.3.0.jar")
    with pytest.raises(
        DriverLoadFailure, match=r"kafka-tools-4.3.0.jar has the SHA-256 sum \w{64}, not \w{64}: "
    ):
        jars.fetch(NAME)
    assert list(jars.directory(NAME).iterdir()) == []


def test_a_jar_that_does_not_come_is_named(tmp_path: Path) -> None:
    maven(tmp_path, "true")
    with pytest.raises(DriverLoadFailure, match=r"kafka-tools-4\.3\.0\.jar was not fetched"):
        jars.fetch(NAME)


def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    maven(tmp_path, "echo '[INFO] so far so good'\necho '[ERROR] no route to the repository'\nexit 1")
    with pytest.raises(
        DriverLoadFailure, match=r"mvn could not fetch them: \[ERROR\] no route to the repository$"
    ):
        jars.fetch(NAME)


def test_without_a_tool_the_way_out_is_named() -> None:
    with pytest.raises(DriverLoadFailure) as caught:
        jars.fetch(NAME)
    assert str(caught.value) == (
        f"jars {NAME}: neither PySpark nor mvn is installed to fetch them; "
        "install one with: pip install 'notifier-kafka[spark]'"
    )


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DriverLoadFailure, match=r"cannot be kept in .*: Not a directory; set XDG_CACHE_HOME"):
        jars.fetch(NAME)


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    maven(tmp_path, f"sleep 0.5\n{DELIVER}")
    # A lock of a file belongs to the open file, so that threads exclude each other as processes do.
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: jars.fetch(NAME), range(2))
    assert first == second
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("name", [jars.KAFKA, jars.KAFKA_TOOLS, jars.SPARK_KAFKA])
def test_the_lists_are_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    listed = jars.listed(name)
    assert len({jar.name for jar in listed}) == len(listed)
    for jar in listed:
        assert len(bytes.fromhex(jar.sha256)) == 32
        assert all((jar.group, jar.artifact, jar.version))


def test_ivy_is_taken_from_the_jars_of_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site" / "pyspark" / "jars").mkdir(parents=True)
    (tmp_path / "site" / "pyspark" / "__init__.py").write_text(
        "raise AssertionError('found without an import')"
    )
    (tmp_path / "site" / "pyspark" / "jars" / "ivy-2.5.3.jar").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    home = tmp_path / "jre"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    # Stands for Ivy: it notes how it was called and delivers.
    java.write_text(
        '#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "17.0.1"\'; exit; fi\n'
        f'echo "$@" > {tmp_path}/called\ncp ivy.xml {tmp_path}/ivy.xml\nmkdir out\n{DELIVER}\n'
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    jars.fetch(NAME)
    called = (tmp_path / "called").read_text()
    assert "ivy-2.5.3.jar org.apache.ivy.Main" in called
    assert f"-Duser.home={tmp_path}/cache/" in called
    assert 'org="org.example" name="kafka-tools" rev="4.3.0"' in (tmp_path / "ivy.xml").read_text()
