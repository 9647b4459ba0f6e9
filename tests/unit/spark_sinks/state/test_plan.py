"""Arithmetic of offsets, and the ledger's files: nothing of it needs Spark."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.errors import PySparkException

from notifier_kafka.contract.driver import Partition, Record, Span
from notifier_kafka.errors import ConfigurationError, LogUnusable
from notifier_kafka.url import TransportURL
from spark_sinks.job import offset_discovery, settings
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.outputs import kafka
from spark_sinks.sources import source, topic_patterns
from spark_sinks.state import ledger, partials, plan
from spark_sinks.state.plan import Plan
from tests.shared.spark import rig

ONE, TWO = Partition("t", 0), Partition("t", 1)
IDENTITY = {"input": "sqlite:///x"}

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted), max_size=6)


def offsets(spans: list[Span]) -> list[int]:
    return [at for span in spans for at in range(span.start, span.stop)]


@given(ranges=RANGES, start=st.integers(0, 40), length=st.integers(0, 40))
def test_what_is_counted_and_what_is_not_are_all(ranges: list[list[int]], start: int, length: int) -> None:
    spans = [Span(ONE, first, stop) for first, stop in ranges]
    counted = plan.add({}, spans).get(ONE, ())
    inside = {at for span in spans for at in range(span.start, span.stop)}
    assert {at for first, stop in counted for at in range(first, stop)} == inside
    assert all(a[1] < b[0] for a, b in itertools.pairwise(counted))

    span = Span(ONE, start, start + length)
    assert offsets(plan.uncounted(span, counted)) == [at for at in offsets([span]) if at not in inside]


@given(lengths=st.lists(st.integers(0, 30), max_size=5), most=st.integers(1, 100))
def test_a_limit_is_used_up_and_not_passed(lengths: list[int], most: int) -> None:
    spans = [Span(Partition("t", number), 5, 5 + length) for number, length in enumerate(lengths)]
    found = plan.limit(spans, most)
    assert plan.records(found) == min(most, sum(lengths))
    wanted = {span.partition: span for span in spans}
    assert all(span.start == 5 < span.stop <= wanted[span.partition].stop for span in found)


def test_a_limit_is_shared() -> None:
    found = plan.limit([Span(ONE, 0, 100), Span(TWO, 0, 3)], 50)
    assert found == (Span(ONE, 0, 47), Span(TWO, 0, 3))


def test_going_on_from_what_is_counted() -> None:
    held = [Span(ONE, 10, 20), Span(TWO, 0, 5)]
    assert plan.following(held, {}, "earliest") == held
    assert plan.following(held, {}, "latest") == [Span(ONE, 20, 20), Span(TWO, 5, 5)]
    # A partition that appears later is read from its beginning, also when the job began at the end.
    assert plan.following(held, {ONE: ((12, 15),)}, "latest") == [Span(ONE, 15, 20), Span(TWO, 0, 5)]


def test_a_position_outlives_a_backfill() -> None:
    counted = plan.add(plan.add({}, [Span(ONE, 100, 100)]), [Span(ONE, 10, 20)])
    held = [Span(ONE, 0, 120)]
    assert plan.following(held, counted, "latest") == [Span(ONE, 100, 120)]
    assert plan.uncounted(held[0], counted[ONE]) == [Span(ONE, 0, 10), Span(ONE, 20, 120)]
    assert plan.add(counted, [Span(ONE, 100, 120)]) == {ONE: ((10, 20), (100, 120))}


def test_where_to_go_on_with_what_a_batch_does_not_read() -> None:
    three = Partition("t", 2)
    spans = [Span(ONE, 30, 40), Span(TWO, 8, 8), Span(three, 5, 9)]
    counted = {TWO: ((0, 4),)}
    assert plan.unplaced(spans, counted, spans[:1], lost=False) == [Span(three, 5, 5)]
    assert plan.unplaced(spans, counted, spans[:1], lost=True) == [Span(TWO, 8, 8), Span(three, 5, 5)]


def test_what_retention_took_is_known() -> None:
    held = [Span(ONE, 10, 20), Span(TWO, 5, 9)]
    assert plan.check_retention(held, {}) == []
    counted = {ONE: ((0, 4),), TWO: ((0, 5),)}
    assert plan.check_retention(held, counted) == [(held[0], 6)]
    assert plan.following(held, counted, "earliest") == held
    with pytest.raises(LogUnusable, match=r"topic t, partition 1 ends at offset 9.*up to 30"):
        plan.check_retention(held, {TWO: ((0, 30),)})


def test_what_lies_between_the_position_and_a_later_time_is_named(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path)
    at = []
    for _ in range(9):
        made.publish([Record("t.info", b"{}", b"k")])
        at.append(max(each.timestamp for each in made.deliveries()))
    (place,) = {each.partition for each in made.deliveries()}

    def asked(since: int, until: int | None = None) -> tuple[list[tuple[int, int]], list[str]]:
        end = None if until is None else at[until]
        found = offset_discovery.spans(made.driver, made.ledger, ["t"], RunLimits(since=at[since], until=end))
        return [
            (s.start, s.stop) for s in found.spans if s.partition == place and s.start < s.stop
        ], found.left_out

    # Of what was never counted everything is left out that a bound leaves out.
    assert asked(4) == ([(4, 9)], [])
    made.ledger.write_counted(Plan(1, (Span(place, 1, 3),)), {})
    words = (
        f"records of t.info[{place.number}] before --since are not counted yet and are left out: offsets 3 to"
    )
    assert asked(4) == ([(4, 9)], [f"1 {words} 4; an earlier --since counts them"])
    assert asked(6, 8) == ([(6, 8)], [f"3 {words} 6; an earlier --since counts them"])
    assert asked(0) == ([(0, 1), (3, 9)], [])
    assert asked(0, 2) == ([(0, 1)], [])
    assert asked(3) == ([(3, 9)], [])


class Losing:
    """A source of which records go while they are read, by which the read fails."""

    def __init__(self, lose: Callable[[], None]) -> None:
        self._lose = lose

    def read(self, *_: object) -> NoReturn:
        self._lose()
        raise PySparkException("an offset is out of range")


def test_what_is_lost_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = rig.Rig(tmp_path)
    made.publish([Record(topic, b"{}", b"k") for topic in ("a.info", "a.info", "b.info")])
    admin = made.driver.admin()
    monkeypatch.setattr(source, "load", lambda _: Losing(lambda: admin.purge_topic("b.info")))
    with made.ledger.locked({"input": made.driver.url.masked()}, settings.metric_digests(made.metrics)):
        made.ledger.write_plan(Plan(1, tuple(made.driver.spans(["a.info", "b.info"]))))
    # Of an interrupted batch two are gone already, and the last one goes when it is read.
    admin.purge_topic("a.info")
    sums = made.run(None, RunLimits(allow_loss=True), topics=["a", "b"])
    assert (sums.lost, sums.read, sums.batches) == (3, 0, 1)


def test_a_pattern_does_not_read_what_the_job_writes(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path)
    admin = made.driver.admin()
    for topic in ("x", "x.batches", "x.info", "y"):
        admin.create_topic(topic, 1)
    own = frozenset({"x", "x.batches"})
    assert topic_patterns.existing(made.driver, ["*"], own) == ["x.info", "y"]
    assert topic_patterns.existing(made.driver, ["x*", "y"], own) == ["x.info"]
    outputs = ["parquet:x", "kafka:x", "kafka://h:9092/z", "kafka://other/w"]
    (tmp_path / "nk.conf").write_text("[DEFAULT]\ntransport_url = kafka://u:p@h/\n")
    conf = rig.conf(str(tmp_path / "nk.conf"))
    read = TransportURL.parse(conf, "kafka://h/")
    assert kafka.written_topics(outputs, read) == own | {"z", "z.batches"}
    assert kafka.written_topics(outputs[:1], TransportURL.parse(rig.conf(), "sqlite:///x")) == frozenset()


def test_a_plan_stays_until_it_is_counted(tmp_path: Path) -> None:
    first = Plan(1, (Span(ONE, 0, 5), Span(TWO, 3, 4)))
    kept = ledger.Ledger(tmp_path)
    with kept.locked(IDENTITY, {}):
        assert (kept.last(), kept.pending(), kept.counted()) == (0, None, {})
        kept.write_plan(first)
    again = ledger.Ledger(tmp_path)
    with again.locked(IDENTITY, {}):
        assert again.pending() == first
        assert again.job == kept.job
        again.write_counted(first, {"read": 6})
        assert (again.last(), again.pending()) == (1, None)
        assert again.counted() == {ONE: ((0, 5),), TWO: ((3, 4),)}
        again.write_counted(Plan(2, (Span(ONE, 5, 7),)), {})
        assert again.counted() == {ONE: ((0, 7),), TWO: ((3, 4),)}
        assert again.sums(1)["read"] == 6


def test_a_job_has_its_directory_for_itself(tmp_path: Path) -> None:
    kept = ledger.Ledger(tmp_path / "a")
    other = ledger.Ledger(tmp_path / "a")
    with (
        kept.locked(IDENTITY, {"m": "1"}),
        pytest.raises(ConfigurationError, match="another process is running"),
    ):
        other.locked(IDENTITY, {}).__enter__()
    with kept.locked(IDENTITY, {"n": "2"}):
        pass
    with pytest.raises(ConfigurationError, match="the definition of metric 'm' differs"):
        kept.locked(IDENTITY, {"m": "3"}).__enter__()
    with pytest.raises(
        ConfigurationError, match='belongs to another job: its input is "sqlite:///x", not "kafka:"'
    ):
        kept.locked({"input": "kafka:"}, {}).__enter__()


def test_directories_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigurationError, match=r"is not empty and not a checkpoint: it holds thesis\.tex"):
        ledger.Ledger(tmp_path).locked(IDENTITY, {}).__enter__()
    with pytest.raises(ConfigurationError, match=r"Not a directory|File exists"):
        ledger.Ledger(tmp_path / "thesis.tex").locked(IDENTITY, {}).__enter__()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "job.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ConfigurationError, match="another version"):
        ledger.Ledger(tmp_path / "b").locked(IDENTITY, {}).__enter__()
    (tmp_path / "b" / "job.json").write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ledger.Ledger(tmp_path / "b").locked(IDENTITY, {}).__enter__()


def test_a_checkpoint_is_its_owners_alone(tmp_path: Path) -> None:
    with ledger.Ledger(tmp_path / "output" / "_job").locked(IDENTITY, {}):
        assert (tmp_path / "output" / "_job").stat().st_mode & 0o777 == 0o700


def test_a_checkpoint_writes_through_no_link_that_was_planted(tmp_path: Path) -> None:
    """Whoever may write into the output may have made the directory before."""
    victim, place = tmp_path / "victim", tmp_path / "output" / "_job"
    victim.write_text("precious")
    place.mkdir(parents=True)
    (place / "lock").symlink_to(victim)
    with (
        pytest.raises(ConfigurationError, match=r"_job: Too many levels of symbolic links"),
        ledger.Ledger(place).locked(IDENTITY, {}),
    ):
        pass
    (place / "lock").unlink()
    kept = ledger.Ledger(place)
    with kept.locked(IDENTITY, {}):
        (place / "plans").mkdir(exist_ok=True)
        (place / "plans" / "00000001.part").symlink_to(victim)
        kept.write_plan(Plan(1, ()))
        (place / "data").mkdir()
        (place / "data" / "some.parquet.part").symlink_to(victim)
        partials.save(pa.table({"a": [1]}), place / "data" / "some.parquet")
    assert victim.read_text() == "precious"
    assert parquet.read_table(place / "data" / "some.parquet").num_rows == 1
