"""Figures are right, and the same in however many batches the notifications came."""

import datetime
import pathlib
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Delivery, Partition
from spark_sinks.decode import full
from spark_sinks.engine import aggregate, durations, rollup
from spark_sinks.engine.sketches import Sketches
from spark_sinks.language import metrics, metrics_file
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Metric
from spark_sinks.outputs import rows
from tests.shared.spark import recount, rig, traffic

DECLARED = """
metrics:
  - {name: count, kind: count, group_by: [event_type, priority], rollups: [1h, 1d]}
  - name: rate
    kind: rate
    event_type: ["*.create.*", "!*.error"]
    publisher: "?ompute*"
    priority: [warn, info]
  - {name: odd, kind: count, event_type: "*.resize_x%*"}
  - {name: sum, kind: sum, value: $.payload.size, group_by: [host, service]}
  - {name: low, kind: min, value: $.payload.size, group_by: [{tenant: $.payload.tenant}]}
  - {name: high, kind: max, value: $.payload.size, window: {width: 5m, every: 1m}}
  - {name: avg, kind: avg, value: "$.payload.disks[0]['gb it']", window: 1h}
  - {name: last, kind: last, value: $.payload.size, group_by: publisher}
  - {name: five, kind: sum, value: 2.5}
  - {name: latest, kind: last, value: 3, window: 1h}
  - {name: users, kind: distinct, value: $.payload.user, window: 1h, group_by: service}
  - {name: percentiles, kind: percentiles, value: $.payload.size, percentiles: [1, 50, 99.9], window: 1h}
  - {name: histogram, kind: histogram, value: $.payload.size, buckets: [-1, 0, 1.5, 100], window: 1h}
  - {name: top, kind: top, k: 3, value: $.payload.tenant, window: 1h}
  - {name: errors, kind: error_share, group_by: service, window: 1h}
  - {name: gap, kind: gap, group_by: event_type, window: 1h}
  - {name: having, kind: count, value: $.payload.tenant, window: 1h}
  - {name: slow, kind: max, value: latency, window: 1h}
  - {name: late, kind: percentiles, value: latency, window: 1h}
  - name: took
    kind: avg
    value: {start: "*.start", end: "*.end", key: [$.payload.id], within: 20m}
    group_by: [event_type]
    window: 1h
  - name: took.longest
    kind: percentiles
    value: {start: "*.start", end: "*.end", key: $.payload.id}
    window: 1h
  - name: picky
    kind: count
    window: 1h
    where:
      - {path: $.payload.tenant, one_of: [red, "5", "it's"]}
      - {path: $.payload.size, above: 0.5}
      - {path: $.payload.size, not_equals: 2}
      - {path: $.payload.user, like: u1*}
  - name: pickier
    kind: sum
    value: $.payload.size
    window: 1h
    where:
      - {path: $.payload.size, below: 1000}
      # More than a long holds.
      - {path: $.payload.size, above: -100000000000000000000}
      - {path: $.payload.size, below: 100000000000000000000}
      - {path: $.context.request_id, exists: true}
      - {path: $.payload.tenant, equals: green}
  - {name: true, kind: count, window: 1h, where: [{path: $.payload.size, equals: true}]}
  - {name: three, kind: count, window: 1h, where: [{path: $.payload.size, equals: 3.5}]}
""".replace("name: true", "name: truth")


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Metric, ...]:
    file = pathlib.Path(tmp_path_factory.mktemp("metrics"), "m.yaml")
    file.write_text(DECLARED)
    return metrics_file.read(str(file))


def deliveries() -> list[Delivery]:
    logged = (traffic.BEGIN - recount.EPOCH).total_seconds() + 7000.25
    return [
        Delivery(record, Partition("t", number % 3), number // 3, logged + number / 4)
        for number, record in enumerate(traffic.records(traffic.notifications(2000)))
    ]


def raw(spark: SparkSession, some: Sequence[Delivery]) -> DataFrame:
    found = [
        (
            *one.partition,
            one.offset,
            datetime.datetime.fromtimestamp(one.timestamp, datetime.UTC),
            *one.record[2:0:-1],
            one.record.headers,
        )
        for one in some
    ]
    return spark.createDataFrame(found, full.RAW_SCHEMA).coalesce(2)


def batch(
    spark: SparkSession, some: Sequence[Delivery], wanted: Sequence[Metric]
) -> tuple[pa.Table, pa.Table]:
    """Make what a batch leaves behind: its partials, its starts and ends."""
    decoded = full.decode(raw(spark, some))
    prepared = aggregate.prepare(decoded, wanted, *durations.events(wanted))
    kept = prepared.persist()
    summary = aggregate.summarise(kept, wanted).toArrow()
    pairs = durations.rows_of(kept, wanted)
    kept.unpersist()
    return rollup.partials(summary, wanted, Sketches(spark).unite), pairs


def figures(
    spark: SparkSession, made: pa.Table, pairs: pa.Table, wanted: Sequence[Metric]
) -> dict[recount.Key, float]:
    sketches = Sketches(spark)
    paired = durations.partials(pairs, wanted, sketches.unite)
    merged = pa.concat_tables([rollup.merge(made, sketches.unite), paired])
    return rig.keyed(rows.of_partials(merged, wanted, sketches.estimate).to_pylist())


def test_one_batch_or_several_and_a_recount(spark: SparkSession, declared: tuple[Metric, ...]) -> None:
    everything = deliveries()
    whole = figures(spark, *batch(spark, everything, declared), declared)
    assert recount.compare(whole, recount.rows(everything, declared), declared) == []
    assert {metric.name for metric in declared} == {key[0] for key in whole}

    random.Random(3).shuffle(everything)
    parts = [batch(spark, some, declared) for some in (everything[:100], everything[100:])]
    made, pairs = (pa.concat_tables(each) for each in zip(*parts, strict=True))
    assert figures(spark, made, pairs, declared) == whole


def test_the_default_set(spark: SparkSession) -> None:
    wanted = metrics_file.default()
    everything = deliveries()
    found = figures(spark, *batch(spark, everything, wanted), wanted)
    assert recount.compare(found, recount.rows(everything, wanted), wanted) == []
    assert {metric.name for metric in wanted} == {key[0] for key in found}


@pytest.mark.parametrize("size", [30, 5_000, 60_000])
def test_sketches_do_not_tell_how_they_were_united(spark: SparkSession, size: int) -> None:
    wanted = (Metric("d", "distinct", "", value=FieldPath("payload")),)
    ids = spark.range(size).withColumn("text", F.col("id").cast("string"))
    parts = [1, 2, 7]
    estimates = set()
    for part in parts:
        sketches = ids.groupBy((F.col("id") % part).alias("part")).agg(
            F.hll_sketch_agg("text", metrics.SKETCH_SIZE).alias("sketch"), F.count("*").alias("count")
        )
        listed = sketches.toArrow()
        figures = {"group": pa.array(["[]"] * part), "count": listed["count"], "sketch": listed["sketch"]}
        (keyed,) = rollup.spread(wanted[0], pa.array([0] * part), figures)
        merged = rollup.merge(keyed, Sketches(spark).unite)
        estimates |= {
            row["value"] for row in rows.of_partials(merged, wanted, Sketches(spark).estimate).to_pylist()
        }
    assert len(estimates) == 1
    assert estimates.pop() == pytest.approx(size, rel=0.05)
