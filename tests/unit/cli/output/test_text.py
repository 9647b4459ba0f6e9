"""Data from the log cannot control the terminal."""

import json

import pytest

from notifier_kafka.cli.output import text

WIDE = ["\uff1dcmd()", "\uff0b1", "\uff0d1+2", "\uff20SUM(1)"]
FORMULAS = ["=cmd()", "+1+cmd|' /C calc'!A0", "-1+2", "@SUM(1)", "\t=1", "\r=1", "--", *WIDE]
HOSTILE = "a\x1b[2J\x9b31m\u202egnp.exe\x00\x7f\u2066\r\nb"


def test_what_cannot_be_seen_is_escaped_and_the_rest_stands() -> None:
    shown = text.visible(HOSTILE)
    assert shown.isprintable()
    assert shown.startswith("a\\x1b[2J")
    assert text.visible("naïve 日本") == "naïve 日本"


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_spreadsheet_takes_no_cell_for_a_formula(cell: str) -> None:
    assert text.csv_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["plain", "", "-", "-5", "+1.5", "-1e-7", "a=b", 7, -3.5, None])
def test_what_is_no_formula_stands_as_it_is(cell: object) -> None:
    assert text.csv_cell(cell) == cell


def test_a_json_line_is_printable_ascii_and_reads_back_the_same() -> None:
    line = text.json_line({"k\x7f": HOSTILE})
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"k\x7f": HOSTILE}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1763452258.4854, "2025-11-18T07:50:58.485Z"),
        (-6e12, "@-6000000000000.000"),
        (2.0**63 / 1000, "@9223372036854776.000"),
        (1e30, "@1000000000000000019884624838656.000"),
    ],
)
def test_times_are_utc(seconds: float, expected: str) -> None:
    assert text.iso(seconds) == expected


def test_a_note_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    text.note("two\nlines")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "notifier-kafka: two\\nlines\n"
