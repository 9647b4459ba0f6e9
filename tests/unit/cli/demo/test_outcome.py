"""When the counts of the demonstration agree, and what it prints if they do not."""

from collections import Counter
from typing import Any

import pytest

from notifier_kafka.cli.demo.outcome import Outcome

AGREEING = Outcome(
    published=Counter(a=3, b=2),
    handled=Counter(a=3, b=2),
    aggregated=Counter(a=3, b=2),
    expected={"duplicate": 1, "malformed": 2, "late": 1},
    listened={"duplicate": 1, "malformed": 2},
    spark={"total": 5, "duplicate": 1, "malformed": 2, "late": 1},
    lost=0,
)


def test_sums_that_agree() -> None:
    assert AGREEING.counts_agree()
    assert list(AGREEING.lines()) == [
        "notifications: 5 published = 5 handled = 5 aggregated; 0 lost",
        "duplicate: 1 published = 1 redelivered = 1 ignored by Spark",
        "malformed: 2 published = 2 set aside = 2 skipped by Spark",
        "late: 1 published = 1 counted by Spark",
    ]


def test_without_spark_the_two_sides_are_enough() -> None:
    alone = AGREEING._replace(aggregated=Counter(), spark={})
    assert alone.counts_agree()
    assert next(alone.lines()) == "notifications: 5 published = 5 handled; 0 lost"


def test_a_record_that_came_more_than_once_is_no_mistake_of_the_listener() -> None:
    assert AGREEING._replace(listened={"duplicate": 7, "malformed": 2}).counts_agree()


@pytest.mark.parametrize(
    "change",
    [
        {"handled": Counter(a=3, b=1)},
        {"handled": Counter(a=2, b=3)},
        {"aggregated": Counter(a=3, b=3)},
        {"aggregated": Counter(a=2, b=3)},
        {"lost": 1},
        {"listened": {"duplicate": 0, "malformed": 2}},
        {"listened": {"duplicate": 1, "malformed": 1}},
        *({"spark": AGREEING.spark | {name: 9}} for name in AGREEING.spark),
        {"spark": AGREEING.spark | {"late": None}},
    ],
)
def test_sums_that_do_not_agree(change: dict[str, Any]) -> None:
    assert not AGREEING._replace(**change).counts_agree()


def test_a_sum_that_differs_is_seen_in_the_line() -> None:
    short = AGREEING._replace(aggregated=Counter(a=3), lost=2)
    assert next(short.lines()) == "notifications: 5 published = 5 handled but 3 aggregated; 2 lost"
