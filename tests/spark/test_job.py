"""A job over a real log: every notification counted once, in however many runs."""

import csv
import datetime
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from stevedore import ExtensionManager

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import LogUnusable
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Duration, Metric, Window
from spark_sinks.state import segments
from tests.shared.spark import recount, rig, traffic

HOUR = (Window.tumbling(3600),)
# Few, because every query over each costs its time; the durations because they go over batches.
FEW = (
    Metric("count", "count", "n", group_by=(("event_type", FieldPath("event_type")),), windows=HOUR),
    Metric("sum", "sum", "B", value=FieldPath("payload", ("size",)), windows=HOUR),
    Metric("users", "distinct", "u", value=FieldPath("payload", ("user",)), windows=HOUR),
    Metric("top", "top", "n", value=FieldPath("publisher_id"), windows=HOUR, k=2),
    Metric("took", "max", "s", value=Duration(keys=(FieldPath("payload", ("id",)),)), windows=HOUR),
)


def test_runs_that_stop_and_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files are merged between the runs: with sketches, starts and ends, and ids that come again.
    monkeypatch.setattr(segments, "MERGE_AFTER_BATCHES", 1)
    made = rig.Rig(tmp_path, FEW)
    sent = traffic.records(traffic.notifications(300))
    made.publish([*sent[:200], *sent[50:60]])
    outputs = [f"{kind}:{tmp_path}/{kind}" for kind in ("parquet", "csv", "json")]
    outputs.append(f"jdbc:sqlite:{tmp_path}/rows.db")

    first = made.run(spark, rig.limits(records=120), outputs)
    assert (first.read, first.batches) == (120, 1)
    made.publish([*sent[200:], *sent[70:80]])
    second = made.run(spark, rig.limits(batch_records=150), outputs)
    assert second.batches == 2
    again = made.run(spark, rig.limits(), outputs)
    assert (again.read, again.batches, again.rows) == (0, 0, {})
    assert made.ledger.merged().until == 3
    assert len(list((tmp_path / "checkpoint" / "partials").iterdir())) == 1

    total = len(sent) + 20
    assert first.read + second.read == total
    assert first.duplicate + second.duplicate == 20 - repeated_malformed(sent)
    assert first.malformed + second.malformed == made.malformed() == count_malformed(made)
    assert first.decoded + second.decoded == len(traffic.notifications(300))
    stops = {key: stop for sums in (first, second) for key, (_, stop) in sums.offsets.items()}
    assert sum(stops.values()) == total

    found = made.parquet("parquet")
    assert recount.compare(found, made.truth(), FEW) == []
    assert table(tmp_path / "rows.db") == found
    assert latest(tmp_path / "csv", "csv") == found
    assert latest(tmp_path / "json", "json") == found


def count_malformed(made: rig.Rig) -> int:
    return sum(1 for each in made.deliveries() if each.record.value in traffic.MALFORMED)


def repeated_malformed(sent: list[Record]) -> int:
    return sum(record.value in traffic.MALFORMED for record in [*sent[50:60], *sent[70:80]])


def table(file: Path) -> dict[recount.Key, float]:
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT * FROM metric_rows").fetchall()
    connection.close()
    return {
        recount.key_of(metric, rig.iso(start), rig.iso(end), rig.group(group)): value
        for metric, _, start, end, group, value in rows
    }


def latest(directory: Path, kind: str) -> dict[recount.Key, float]:
    """Read a directory as anybody would: batch by batch, the later one replacing windows."""
    found: dict[recount.Key, float] = {}
    for batch in sorted(directory.glob("batch=*")):
        lines = [line for part in sorted(batch.glob(f"part-*.{kind}")) for line in read(part, kind)]
        keyed = {
            recount.key_of(
                each["metric"], at(each, "window_start"), at(each, "window_end"), each["group"]
            ): float(each["value"])
            for each in lines
        }
        units = {key[:3] for key in keyed}
        found = {key: value for key, value in found.items() if key[:3] not in units} | keyed
    return found


def read(part: Path, kind: str) -> list[dict[str, Any]]:
    with part.open(newline="") as file:
        if kind == "json":
            return [json.loads(line) for line in file]
        return [each | {"group": rig.group(each["group"])} for each in csv.DictReader(file)]


def at(each: dict[str, Any], name: str) -> datetime.datetime:
    return rig.iso(str(each[name]).replace(".000Z", ""))


def test_beginning_at_the_end_a_backfill_and_a_loss(spark: SparkSession, tmp_path: Path) -> None:
    made = rig.Rig(tmp_path, FEW[:1])
    outputs = [f"jdbc:sqlite:{tmp_path}/rows.db"]
    sent = traffic.records(traffic.notifications(100))
    made.publish(sent[:60])
    assert made.run(spark, rig.limits(start="latest"), outputs).read == 0
    made.publish(sent[60:])
    assert made.run(spark, rig.limits(start="latest"), outputs).read == len(sent) - 60
    assert made.run(spark, rig.limits(since=0.0), outputs).read == 60
    assert made.run(spark, rig.limits(since=0.0), outputs).read == 0
    counted = made.truth()
    assert table(tmp_path / "rows.db") == counted

    made.publish(sent[:10])
    made.driver.admin().purge_topic("t.info")
    with pytest.raises(
        LogUnusable, match=r"t\.info, partition \d: \d+ records before offset \d+ were deleted"
    ):
        made.run(spark, rig.limits(), outputs)
    late = traffic.records(traffic.notifications(5, seed=9))
    made.publish(late)
    again = made.run(spark, rig.limits(allow_loss=True), outputs)
    assert (again.lost, again.read) == (10, len(late))
    assert made.run(spark, rig.limits(), outputs).lost == 0
    assert sum(table(tmp_path / "rows.db").values()) == sum(counted.values()) + 5


@pytest.mark.long
def test_where_a_run_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """What a bound left out of a first run, or lost, stays so, also of a partition that had nothing."""
    made = rig.Rig(tmp_path, FEW[:1])
    sent = [
        each for each in traffic.records(traffic.notifications(40)) if each.value not in traffic.MALFORMED
    ]
    keys = {partition: key for key, partition in _partitions(made).items()}
    made.publish([record._replace(key=keys[number % 3]) for number, record in enumerate(sent[:12])])
    middle = time.time()
    made.publish([record._replace(key=keys[1]) for record in sent[12:15]])
    assert made.run(spark, rig.limits(since=middle, records=1)).read == 1
    made.publish([record._replace(key=keys[2]) for record in sent[15:17]])
    # Two are left of what is later, and two came: the twelve before are not counted by themselves.
    assert made.run(spark, rig.limits()).read == 4
    assert made.run(spark, rig.limits(since=0.0, until=middle)).read == 12

    # All of one partition is lost: that is said once.
    made.publish([record._replace(key=keys[0]) for record in sent[17:20]])
    made.driver.admin().purge_topic("t.info")
    lossy = made.run(spark, rig.limits(allow_loss=True))
    assert (lossy.lost, lossy.read) == (3, 0)
    assert (made.run(spark, rig.limits()).lost, made.ledger.last()) == (0, lossy.batches + 3)


def _partitions(made: rig.Rig) -> dict[bytes, int]:
    """Return a key for each of the three partitions, told by where records with it go."""
    probes = [b"%d" % number for number in range(30)]
    made.publish([Record("probe", b"{}", key) for key in probes])
    found = {each.record.key or b"": each.partition.number for each in made.deliveries(["probe"])}
    assert set(found.values()) == {0, 1, 2}
    return found


GUEST = """
import json, os
class Guest:
    def __init__(self, place, conf):
        self.place = place
    def last(self, job):
        return max((int(name.split(".")[0]) for name in os.listdir(self.place)), default=0)
    def write(self, job, batch, found):
        with open(f"{self.place}/{batch}.json", "w") as file:
            json.dump([[*map(str, row.values())] for row in found.to_pylist()], file)
        if os.path.exists(f"{self.place}.broken"):
            os.remove(f"{self.place}/{batch}.json")
            raise RuntimeError("the disk is\\non fire")
"""


def install(site: Path) -> None:
    """Put another distribution where pip would."""
    info = site / "guest-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spark_sinks.sinks]\nguest = guest_sink:Guest\n")
    (site / "guest_sink.py").write_text(GUEST)


def test_a_sink_of_others_that_fails_and_catches_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    # What was installed when the first plugin was loaded: a process of its own would see it.
    monkeypatch.setattr(ExtensionManager, "ENTRY_POINT_CACHE", {})
    place, broken = tmp_path / "guest", tmp_path / "guest.broken"
    place.mkdir()
    broken.touch()
    made = rig.Rig(tmp_path, FEW[:2])
    guest = f"guest:{place}"
    outputs = [f"parquet:{tmp_path}/out", guest, f"jdbc:sqlite:{tmp_path}/rows.db"]
    sent = traffic.records(traffic.notifications(100))
    made.publish(sent[:60])
    first = made.run(spark, rig.limits(), outputs)
    assert first.failures == {guest: "the disk is on fire"}
    assert set(first.rows) == {outputs[0], outputs[2]}
    made.publish(sent[60:])
    second = made.run(spark, rig.limits(), outputs)
    assert set(second.failures) == {guest}
    truth = made.truth()
    assert made.parquet("out") == table(tmp_path / "rows.db") == truth

    broken.unlink()
    third = made.run(spark, rig.limits(), outputs)
    assert (third.read, third.failures, list(third.rows)) == (0, {}, [guest])
    assert len(json.loads((place / "2.json").read_text())) == len(truth)
    assert made.parquet("out") == table(tmp_path / "rows.db") == truth
    assert sorted(path.name for path in (tmp_path / "out" / "_batches").iterdir()) == ["00000001", "00000002"]


@pytest.mark.long
def test_a_batch_of_many_topics(spark: SparkSession, tmp_path: Path) -> None:
    """Each record keeps its place among all, however many topics and partitions there are."""
    made = rig.Rig(tmp_path, FEW[:1], f"sqlite:///{tmp_path}/log.db?partitions=2&synchronous=normal")
    sent = [
        each for each in traffic.records(traffic.notifications(18)) if each.value not in traffic.MALFORMED
    ]
    sent[1] = sent[0]
    topics = [f"t{number:02}" for number in range(18)]
    for topic, record in zip(topics, sent, strict=True):
        made.publish([record._replace(topic=topic, key=b"same"), Record(topic, b"[]", b"same")])
    sums = made.run(spark, rig.limits(), topics=["t??"])
    assert (sums.read, sums.decoded, sums.duplicate, sums.malformed) == (36, 17, 1, 18)
    [noted] = (tmp_path / "checkpoint" / "malformed").glob("*.json")
    found = [json.loads(line) for line in noted.read_text().splitlines()]
    there = [(d.record.topic, d.partition.number, d.offset) for d in made.deliveries(topics) if d.offset == 1]
    assert sorted((each["topic"], each["partition"], each["offset"]) for each in found) == sorted(there)
