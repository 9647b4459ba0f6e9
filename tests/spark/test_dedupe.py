"""Copies of a notification count once within the horizon, however the log was cut into batches."""

import datetime
import itertools
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from notifier_kafka.contract.driver import Record
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec
from spark_sinks.engine import dedupe
from spark_sinks.language.metrics import Latency, Metric
from tests.shared.spark import rig, traffic
from tests.spark import test_job

HORIZON = 10.0
Copy = tuple[int, int, int]
"""A hash, a second, a place."""

COPIES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 60)), min_size=1, max_size=30)


def gone(batch: list[Copy], seen: list[list[Copy]]) -> set[int]:
    found = pa.table(
        {
            "id": pa.array([copy[0] for copy in batch], pa.int64()),
            "logged": pa.array([copy[1] * 1_000_000 for copy in batch], pa.timestamp("us", "UTC")),
            "place": pa.array([copy[2] for copy in batch], pa.int64()),
        }
    )
    before = [
        pa.table({"id": [c[0] for c in each], "logged": [c[1] * 1_000_000 for c in each]}, dedupe.SEEN)
        for each in seen
    ]
    return set(dedupe.duplicates(dedupe.ids(found), before, HORIZON).to_pylist())


def truth(copies: list[Copy]) -> set[int]:
    """Return the places that count, one record after the other."""
    latest: dict[int, int] = {}
    counted = set()
    for own, second, place in sorted(copies, key=lambda copy: copy[1:]):
        if own not in latest or second - latest[own] > HORIZON:
            counted.add(place)
        latest[own] = second
    return counted


@given(made=COPIES, cuts=st.lists(st.integers(0, 30), max_size=6))
def test_batches_in_the_order_of_the_log_count_the_same(made: list[tuple[int, int]], cuts: list[int]) -> None:
    by_time = sorted(made, key=lambda copy: copy[1])
    copies = [(own, second, place) for place, (own, second) in enumerate(by_time)]
    edges = sorted({0, len(copies), *(min(cut, len(copies)) for cut in cuts)})
    batches = [copies[start:stop] for start, stop in itertools.pairwise(edges)]
    counted = {copy[2] for copy in copies}
    for number, batch in enumerate(batches):
        counted -= gone(batch, batches[:number])
    assert counted == truth(copies) == {copy[2] for copy in copies} - gone(copies, [])


def test_what_was_counted_stays() -> None:
    """A partition that is read later may hold an earlier copy, or copies on the way to one."""
    assert gone([(1, 0, 0)], [[(1, 9, 0)]]) == {0}
    assert gone([(1, 0, 0), (1, 9, 1)], [[(1, 18, 0)]]) == {0, 1}
    assert gone([(1, 0, 0), (1, 9, 1)], [[(1, 20, 0)]]) == {1}
    assert gone([(1, 0, 0), (2, 0, 1)], [[(3, 0, 0)]]) == set()


def stamped(made: rig.Rig, stamps: Sequence[int]) -> None:
    """Have the records been logged, one after the other, at such microseconds."""
    with sqlite3.connect(made.directory / "log.db") as log:
        blocks = [row[0] for row in log.execute("SELECT id FROM blocks ORDER BY id")]
        for block, stamp in zip(blocks, stamps, strict=True):
            log.execute("UPDATE blocks SET stamp = ? WHERE id = ?", (stamp, block))
    log.close()


@pytest.mark.long
def test_absurd_stamps(spark: SparkSession, tmp_path: Path) -> None:
    """A producer may stamp its records with any number: its event's time counts then, or that of 2000."""
    made = rig.Rig(tmp_path, METRICS)
    when = "2026-11-18 12:30:00.000000"
    sent: list[Record] = []
    for number, form in enumerate(traffic.FORMS):
        one = Notification(f"m{number}", "p", "a.b", "INFO", {}, when, {})
        sent += [Record("t.info", value, b"k", headers) for value, headers in [codec.encode(one, form)] * 2]
    timeless = b'{"priority": "INFO", "event_type": "a.b"}'
    for record in (*sent, Record("t.info", timeless, b"k"), Record("t.info", b"{", b"k")):
        made.publish([record])
    second = 1_763_469_000 + 365 * 86_400
    # In 1970; before it, as Kafka has it for none; in the year 59000, from microseconds; a good one.
    stamps = [
        0,
        second,
        -1000,
        second,
        second * 10**9,
        second,
        second * 10**9,
        second,
        253_402_300_800 * 10**6,
        0,
    ]
    stamped(made, [each if each != second else second * 10**6 for each in stamps])
    sums = made.run(spark, rig.limits(), [f"parquet:{tmp_path}/out"])
    assert (sums.decoded, sums.duplicate, sums.malformed, sums.misdated) == (5, 4, 1, 1)
    found = {key[:2]: value for key, value in made.parquet("out").items()}
    # Of each two copies one counts, with a time of its own or of the log: both are the same.
    assert found == {
        ("count", second // 3600 * 3600): 4,
        ("late", second // 3600 * 3600): 0,
        ("count", 946_684_800): 1,
        ("late", 946_684_800): 0,
    }
    noted = made.ledger.sums(1)
    assert (noted["oldest_logged"], noted["newest_logged"]) == (second, second), "ids are looked for near"


MINUTES = [0, 1, 300, 300.5, 299, 600]
METRICS = (
    *test_job.FEW[:1],
    Metric("late", "max", "s", value=Latency(), windows=test_job.HOUR),
)


def publish(made: rig.Rig) -> None:
    """Publish notifications and copies of them; ``MINUTES`` are when they were logged."""
    sent = [
        each for each in traffic.records(traffic.notifications(12)) if each.value not in traffic.MALFORMED
    ]
    when = datetime.datetime(2026, 11, 18, 12, tzinfo=datetime.UTC).timestamp()
    for turn in range(len(MINUTES)):
        for number, record in enumerate(sent):
            # Each copy in another partition than the one before.
            made.publish([Record("t.info", record.value, b"%d" % (number + turn), record.headers)])
    with sqlite3.connect(made.directory / "log.db") as log:
        rows = log.execute("SELECT id FROM blocks").fetchall()
        assert len(rows) == len(sent) * len(MINUTES)
        places = {(row[0] >> 40, row[0] & ((1 << 40) - 1)): row[0] for row in rows}
        partitions = dict(log.execute("SELECT number, id FROM partitions"))
        turns: dict[Any, int] = {}
        for delivery in sorted(made.deliveries(), key=lambda each: each.timestamp):
            turn = turns[delivery.record.value] = turns.get(delivery.record.value, -1) + 1
            log.execute(
                "UPDATE blocks SET stamp = ? WHERE id = ?",
                (
                    round((when + MINUTES[turn] * 60) * 1_000_000),
                    places[partitions[delivery.partition.number], delivery.offset],
                ),
            )
    log.close()


def test_one_batch_and_many(spark: SparkSession, tmp_path: Path) -> None:
    found = []
    publish(rig.Rig(tmp_path, METRICS))
    for batch_records in (1000, 12):
        made = rig.Rig(tmp_path, METRICS)
        made.ledger = type(made.ledger)(tmp_path / f"checkpoint-{batch_records}")
        output = f"parquet:{tmp_path}/out-{batch_records}"
        sums = made.run(spark, rig.limits(deduplicate_seconds=90.0, batch_records=batch_records), [output])
        found.append((sums.decoded, sums.duplicate, made.parquet(f"out-{batch_records}")))
        assert sums.batches == (1 if batch_records == 1000 else 6)
    assert found[0] == found[1]
    # Minutes 0 and 1, 299 to 300.5, and 600 are apart.
    assert found[0][:2] == (36, 36)
