"""Payloads from the command line, files and pipes."""

import os
import pathlib
import sys
from collections.abc import Iterator

import pytest

from notifier_kafka.cli import payloads
from notifier_kafka.cli.exits import UsageError


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the writing end of a real pipe whose other end is standard input."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "r", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield writing


def test_an_argument_is_json_or_text() -> None:
    assert payloads.read_one('{"a": [1, null]}', as_text=False) == {"a": [1, None]}
    assert payloads.read_one("-5", as_text=False) == -5
    assert payloads.read_one("{not json", as_text=True) == "{not json"


@pytest.mark.parametrize("argument", ["{", "", "hello", "NaN", '{"a": Infinity}', "[" * 100_000, "9" * 5000])
def test_what_is_not_json_is_refused_in_one_line(argument: str) -> None:
    with pytest.raises(UsageError, match=r"^PAYLOAD is ") as caught:
        payloads.read_one(argument, as_text=False)
    assert "\n" not in str(caught.value)


def test_a_file_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "payload.json"
    path.write_bytes('\ufeff{"ä": 1}\r\n'.encode())
    assert payloads.read_one(f"@{path}", as_text=False) == {"ä": 1}


def test_a_file_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    argument = f"@{tmp_path}/none"
    with pytest.raises(UsageError, match="none': No such file"):
        payloads.read_one(argument, as_text=False)
    with pytest.raises(UsageError, match="none': No such file"):
        list(payloads.read_lines(argument, as_text=False))


def test_lines_of_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lines"
    many = "".join(f'{{"n": {n}}}\r\n\n' for n in range(20_000))
    path.write_text(many + '{"n": "last, without an end"}')
    found = [each for block in payloads.read_lines(f"@{path}", as_text=False) for each in block]
    assert [each["n"] for each in found] == [*range(20_000), "last, without an end"]


def test_a_line_longer_than_a_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "long"
    path.write_text("x" * 300_000 + "\ny\n")
    assert list(payloads.read_lines(f"@{path}", as_text=True)) == [["x" * 300_000, "y"]]


def test_a_line_of_a_pipe_comes_before_the_next_is_written(pipe: int) -> None:
    found = payloads.read_lines("-", as_text=False)
    os.write(pipe, b'{"a": 1}\n{"b"')
    assert next(found) == [{"a": 1}]
    os.write(pipe, b": 2}\n")
    assert next(found) == [{"b": 2}]
    os.close(pipe)
    assert list(found) == []


def test_a_bad_line_is_named_by_its_number(pipe: int) -> None:
    os.write(pipe, b'{"a": 1}\n\n\xff\n')
    os.close(pipe)
    with pytest.raises(UsageError, match="standard input, line 3 is not UTF-8"):
        list(payloads.read_lines("-", as_text=False))


def test_lines_of_an_argument_are_refused() -> None:
    with pytest.raises(UsageError, match="--lines reads from"):
        list(payloads.read_lines("a\nb", as_text=True))
