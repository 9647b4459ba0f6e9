"""Durations: starts and ends are kept as they come, and paired when figures are made.

A start may come batches before its end, or after it. So what is kept beside the partials is
each start and each end; an end is paired with the latest start before it with the same key,
which does not depend on the order in which they came.
"""

import functools
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks import aggregate, columns
from spark_sinks.aggregate import PARTIAL
from spark_sinks.columns import NUMBER, SUM
from spark_sinks.metrics import Duration, Metric

EVENT = (
    "metric string, operation string, key string, ending boolean, time timestamp, "
    "topic string, partition int, offset bigint, `group` array<string>"
)
"""``operation`` is what the event types of start and end have in common."""

_NAMES = ("metric", "operation", "key", "ending", "time", "topic", "partition", "offset", "group")


def events(metrics: Sequence[Metric]) -> Column:
    """Return the starts and ends that a notification is, as an array of structs."""
    made = [_event(metric, metric.value) for metric in metrics if isinstance(metric.value, Duration)]
    return F.filter(F.array(*made), lambda each: each.isNotNull())


def _event(metric: Metric, value: Duration) -> Column:
    event_type = F.col("event_type")
    ending = event_type.endswith(value.end)
    suffix = F.when(ending, len(value.end)).otherwise(len(value.start))
    key = F.coalesce(*(columns.text(path) for path in value.keys))
    found = columns.selected(metric.selection) & (ending | event_type.endswith(value.start))
    return F.when(
        found & key.isNotNull(),
        F.struct(
            F.lit(metric.name).alias("metric"),
            F.substr(event_type, F.lit(1), F.length(event_type) - suffix).alias("operation"),
            key.alias("key"),
            ending.alias("ending"),
            aggregate.texts([columns.text(path) for _, path in metric.group_by]).alias("group"),
        ),
    )


def any_of(metrics: Sequence[Metric]) -> bool:
    """Tell whether there is a duration among the metrics."""
    return any(isinstance(metric.value, Duration) for metric in metrics)


def is_event(metric: Metric, value: Duration) -> Column:
    """Tell by its texts whether a notification may be a start or an end."""
    event_type = F.col("event_type")
    chosen = columns.selected_by_texts(metric.selection)
    return chosen & (event_type.endswith(value.end) | event_type.endswith(value.start))


def rows_of(prepared: DataFrame) -> DataFrame:
    """Take the starts and ends out of prepared notifications, where they are ``pairs``."""
    each = prepared.where(F.col("reason").isNull()).select(
        F.explode("pairs").alias("pair"), "time", "topic", "partition", "offset"
    )
    return each.select(*(F.col(name) if name in each.columns else F.col(f"pair.{name}") for name in _NAMES))


def touched(events: DataFrame, new: DataFrame) -> DataFrame:
    """Return the ends whose durations the events of a batch may have changed or added."""
    keys = new.select("metric", "operation", "key").distinct()
    return events.where("ending").join(keys, ["metric", "operation", "key"], "left_semi")


def units(ends: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Return the metrics and windows that some ends fall into."""
    made = ends.sparkSession.createDataFrame([], "metric string, start bigint, width int")
    for metric in metrics:
        if isinstance(metric.value, Duration):
            windows = F.explode(aggregate.windows_of(metric, F.unix_seconds("time"))).alias("window")
            mine = ends.where(F.col("metric") == metric.name).select("metric", windows)
            made = made.unionByName(mine.select("metric", "window.*"))
    return made.distinct()


def partials(events: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Pair starts and ends, and make partials of the durations."""
    order = Window.partitionBy("metric", "operation", "key").orderBy("time", "ending")
    started = F.last(F.when(~F.col("ending"), F.col("time")), ignorenulls=True).over(
        order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    seconds = (F.unix_micros("time") - F.unix_micros("started")) / F.lit(1_000_000)
    paired = events.withColumn("started", started).where("ending").withColumn("value", seconds.cast(NUMBER))
    made = [_rows(paired, metric, metric.value) for metric in metrics if isinstance(metric.value, Duration)]
    if not made:
        return events.sparkSession.createDataFrame([], PARTIAL)
    return aggregate.merge(functools.reduce(DataFrame.unionByName, made), metrics)


def _rows(paired: DataFrame, metric: Metric, value: Duration) -> DataFrame:
    mine = paired.where((F.col("metric") == metric.name) & (F.col("value") <= value.within))
    windows = aggregate.windows_of(metric, F.unix_seconds("time"))
    number = F.col("value")
    return mine.select(F.explode(windows).alias("window"), "*").select(
        "window.*",
        "metric",
        "group",
        aggregate.item(metric, number).alias("item"),
        F.lit(1).cast("bigint").alias("count"),
        number.cast(SUM).alias("sum"),
        number.alias("low"),
        number.alias("high"),
        aggregate.last(number).alias("last"),
        F.lit(None).cast("binary").alias("sketch"),
    )
