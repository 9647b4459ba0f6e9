"""Hints at misspelt names."""

import pytest

from notifier_kafka.contract import did_you_mean


@pytest.mark.parametrize(
    ("name", "hint", "with_choices"),
    [
        ("topic", "did you mean topics?", "did you mean topics? known are retry, topics"),
        (7, "nothing is like it", "known are retry, topics"),
    ],
)
def test_a_misspelt_name_gets_a_hint_and_the_choices(name: object, hint: str, with_choices: str) -> None:
    known = ["retry", "topics"]

    assert did_you_mean.hint(name, known, "nothing is like it") == hint
    assert did_you_mean.hint_and_choices(name, known) == with_choices


def test_without_choices_it_says_none() -> None:
    assert did_you_mean.hint_and_choices("topic", [], "installed are") == "installed are none"
