"""Argument types: a value, or an error of one line."""

import argparse

import pytest

from notifier_kafka.cli import arguments


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("beginning", "earliest"),
        ("end", "latest"),
        ("1970-01-01T01:00", 3600.0),
        ("1970-01-01T01:00:00Z", 3600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-02", 86400.0),
    ],
)
def test_a_start_is_a_word_or_a_time_in_utc(argument: str, expected: object) -> None:
    assert arguments.start(argument) == expected


def test_numbers_and_patterns() -> None:
    assert arguments.positive("12") == 12
    assert arguments.seconds("0.5") == 0.5
    assert arguments.pattern("a+").match("aab")


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        (arguments.start, "yesterday"),
        (arguments.positive, "0"),
        (arguments.positive, "-3"),
        (arguments.positive, "²"),
        (arguments.positive, "many"),
        (arguments.seconds, "-1"),
        (arguments.seconds, "nan"),
        (arguments.seconds, "inf"),
        (arguments.seconds, "soon"),
        (arguments.pattern, "("),
    ],
)
def test_what_makes_no_sense_is_named(kind: type, argument: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^'"):
        kind(argument)
