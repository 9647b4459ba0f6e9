"""The table of the benchmarks: medians, ratios by round, verdicts, and the same as JSON."""

import json

import pytest

from benchmarks import rows
from benchmarks.measure import Round
from benchmarks.rows import Goal, Row, Spread
from benchmarks.sections import call_latency, memory
from benchmarks.spark import section

RATES = {
    "ours": [Round(10.0, 4.0), Round(40.0, 8.0), Round(30.0, 6.0)],
    "bare": [Round(20.0, 2.0), Round(40.0, 2.0), Round(15.0, 3.0)],
}


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    row = rows.make_ratio_row("publish", RATES, "ours", "bare")

    assert row.figure == Spread(30.0, 10.0, 40.0)
    # Of the medians it would be 1.5.
    assert row.ratio == Spread(1.0, 0.5, 2.0)
    assert (row.cpu, row.by_cpu) == (Spread(6.0, 4.0, 8.0), Spread(0.5, 0.25, 0.5))
    assert (row.group, row.name, row.beside, row.unit) == ("publish", "ours", "bare", "/s")


@pytest.mark.parametrize(
    ("sign", "bound", "met"),
    [
        ("≥", 1.0, True),
        ("≥", 1.1, False),
        (">", 1.0, False),
        ("≤", 1.0, True),
        ("≤", 0.9, False),
        ("<", 1.0, False),
    ],
)
def test_a_row_with_a_ratio_is_judged_by_its_median(sign: str, bound: float, met: bool) -> None:
    assert rows.make_ratio_row("publish", RATES, "ours", "bare", Goal(sign, bound)).met is met


def test_a_row_without_a_ratio_is_judged_by_its_figure() -> None:
    assert rows.make_row("publish", RATES, "ours", Goal(">", 29)).met is True
    assert rows.make_row("publish", RATES, "ours", Goal(">", 30)).met is False
    assert rows.make_row("publish", RATES, "ours").met is None


def test_growth_is_beside_the_first() -> None:
    first, second = rows.make_scaling_rows("processes", {"1": [Round(10.0)], "2": [Round(15.0)]})

    assert first.ratio is None
    assert (second.beside, second.ratio) == ("1", Spread(1.5, 1.5, 1.5))


def test_the_table_says_figure_ratio_target_and_verdict() -> None:
    met = rows.make_ratio_row("publish", RATES, "ours", "bare", Goal("≥", 0.9))
    missed = rows.make_ratio_row("publish", RATES, "bare", "ours", Goal("≥", 5))
    title, _heads, first, second = rows.table([met, missed]).strip().splitlines()

    assert title == "publish"
    assert first.split() == "ours 30.0 10.0 40.0 /s 6.0 1.00 0.50 2.00 0.50 of bare [≥ 0.9: met]".split()  # noqa: SIM905
    assert second.endswith("[≥ 5: MISSED]")
    assert rows.summary([met, missed]) == "1 of 2 targets met\n  missed: publish: bare"


def test_json_holds_what_the_table_does() -> None:
    row = rows.make_ratio_row("publish", RATES, "ours", "bare", Goal("≥", 0.9))

    assert json.loads(json.dumps(rows.to_json(row))) == {
        "group": "publish",
        "name": "ours",
        "figure": {"middle": 30.0, "least": 10.0, "most": 40.0},
        "unit": "/s",
        "beside": "bare",
        "ratio": {"middle": 1.0, "least": 0.5, "most": 2.0},
        "target": {"sign": "≥", "bound": 0.9},
        "cpu": {"middle": 6.0, "least": 4.0, "most": 8.0},
        "by_cpu": {"middle": 0.5, "least": 0.25, "most": 0.5},
        "met": True,
    }
    assert rows.to_json(rows.make_row("publish", RATES, "ours"))["ratio"] is None


def test_a_row_comes_back_from_json_as_it_was() -> None:
    target = Goal("≥", 0.5)
    for row in (
        rows.make_ratio_row("publish", RATES, "ours", "bare", target),
        rows.make_row("publish", RATES, "ours"),
    ):
        assert rows.from_json(json.loads(json.dumps(rows.to_json(row)))) == row


def test_calls_have_targets_by_client() -> None:
    seen = {"p50": 10.0, "p99": 300.0, "p99.9": 900.0, "most": 1e3, "late": 0, "lost": 2}
    p50, p99, p999, longest, lost = call_latency.rows_of("confluent-kafka, hung", [seen])
    slower = call_latency.rows_of("kafka-python, gone", [seen | {"lost": 0}])

    assert [p50.met, p99.met, p999.met, longest.met] == [True, False, None, True]
    assert (lost.name, lost.figure.middle) == ("confluent-kafka, hung: lost", 2)
    assert [row.met for row in slower] == [None, True, None, True]


def test_one_call_that_is_too_long_is_one_too_many() -> None:
    seen = {"p50": 10.0, "p99": 90.0, "p99.9": 900.0, "most": 1e3, "late": 0, "lost": 0}
    rounds = [seen, seen | {"most": 60_000.0}, seen]

    assert [row.met for row in call_latency.rows_of("confluent-kafka, gone", rounds)] == [
        True,
        True,
        None,
        False,
    ]
    assert [row.met for row in call_latency.rows_of(call_latency.IDLE, rounds)] == [None] * 4


def test_memory_is_beside_its_bound() -> None:
    seen = {"before": 40 << 20, "first": 44 << 20, "second": 48 << 20, "offered": 9, "lost": 0}
    grown, later = memory.rows_of("gone", "a client", seen, 16 << 20)

    assert (grown.figure.middle, grown.ratio, grown.met) == (8.0, Spread(0.5, 0.5, 0.5), True)
    assert later.met is False


def test_a_spool_may_take_as_much_again() -> None:
    once = memory.allowed_growth(8 << 20, spool=False)

    assert 8 << 20 < once < 48 << 20
    assert memory.allowed_growth(8 << 20, spool=True) == 2 * once


def test_spark_is_beside_its_floor() -> None:
    rich, seconds = "payload, percentiles, distinct", {"default metrics, warm": 2.0}
    figures = [{"name": "first run", "records": 100, "seconds": 1.0, "cpu": 1.0}]
    for number in (1, 2):
        for name in ("floor", "default metrics, warm", "single-process loop", rich):
            took = seconds.get(name, 1.0) + 2 * (number - 1) * (name == rich)
            figures.append({"name": f"{name} {number}", "records": 100, "seconds": took, "cpu": 1.0})
    found: list[Row] = section.make_rows(figures)

    assert [(row.name, row.met) for row in found[:3]] == [
        ("default metrics, warm", True),
        ("default metrics, warm", False),
        ("payload, percentiles, distinct", True),
    ]
    # Each round beside the floor of the same round.
    assert found[2].ratio == pytest.approx((2 / 3, 1 / 3, 1.0))
