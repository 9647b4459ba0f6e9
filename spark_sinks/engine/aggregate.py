"""Notifications to a summary: one grouping by everything that any metric distinguishes.

Spark does this where the notifications are; ``rollup`` makes each metric's partials from the
small result.
"""

import functools
import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.engine import expressions, metric_columns
from spark_sinks.engine.expressions import NUMBER, SUM
from spark_sinks.engine.metric_columns import RECORD_COLUMNS, columns_of, has_root_item, needs_own_column
from spark_sinks.language.field_paths import TREES, FieldPath
from spark_sinks.language.metrics import (
    COUNTED,
    DAY_SECONDS,
    SKETCH_SIZE,
    Constant,
    Duration,
    Latency,
    Metric,
    Selection,
)

_MICROSECOND = "0.000001"


def prepare(decoded: DataFrame, metrics: Sequence[Metric], *more: Column) -> DataFrame:
    """Select what the metrics need from decoded notifications: few small columns, cheap to persist."""
    own = {
        name: column for index in range(len(metrics)) for name, column in _own_columns(metrics, index).items()
    }
    named = [column.alias(name) for name, column in own.items()]
    return decoded.select(*RECORD_COLUMNS, *_root_texts(metrics), *named, *more)


def summarise(prepared: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Group once by everything that any metric distinguishes. Malformed records are counted by reason.

    Each metric has its ``group`` and, unless it counts every notification, ``selected``.
    """
    base = functools.reduce(
        math.gcd, (w.every for m in single_event(metrics) for w in m.windows), DAY_SECONDS
    )
    start = F.floor(F.unix_seconds("time") / base) * base
    sound = F.col("reason").isNull()
    own = set(metric_columns.dimensions(metrics))
    names = (*_root_texts(single_event(metrics)), *(name for name in prepared.columns if name in own))
    dimensions = [F.when(sound, F.col(name)).alias(name) for name in names]
    measures = {n: c for i in range(len(metrics)) for n, c in _measures(metrics, i).items()}
    grouped = prepared.groupBy("reason", F.when(sound, start).alias("start"), *dimensions).agg(
        F.count("*").alias("count"),
        F.max("time").alias("newest"),
        F.sum(F.when(sound & F.col("misdated"), 1).otherwise(0)).alias("misdated"),
        *(column.alias(name) for name, column in measures.items()),
    )
    return grouped.select("*", *_added_columns(metrics))


def single_event(metrics: Sequence[Metric]) -> list[Metric]:
    """List the metrics of single notifications: all but durations."""
    return [metric for metric in metrics if not isinstance(metric.value, Duration)]


def group(made: Sequence[Column]) -> Column:
    """Return texts as a JSON array."""
    return (
        F.to_json(F.array(*made).cast("array<string>"), {"ignoreNullFields": "false"})
        if made
        else F.lit("[]")
    )


def _added_columns(metrics: Sequence[Metric]) -> list[Column]:
    """Return what follows from the grouping texts: here it is computed for a few rows only."""
    made = []
    for index, metric in enumerate(metrics):
        if isinstance(metric.value, Duration):
            continue
        columns = columns_of(metrics, index)
        texts = [
            F.col(columns.group_value(place)) if needs_own_column(path) else expressions.text(path)
            for place, (_, path) in enumerate(metric.group_by)
        ]
        made.append(group(texts).alias(columns.group))
        chosen = metric.selection
        if not chosen.conditions and (chosen.event_types or chosen.publishers or chosen.priorities):
            made.append(expressions.selected_by_texts(chosen).alias(columns.selected))
        if has_root_item(metric) and isinstance(metric.value, FieldPath):
            made.append(expressions.text(metric.value).alias(columns.root_item))
    return made


def _root_texts(grouped: Sequence[Metric]) -> list[str]:
    """List the notification's own texts that the summary is grouped by."""
    found = {"priority"}
    for metric in grouped:
        found |= {path.root for _, path in metric.group_by if path.root not in TREES}
        if has_root_item(metric) and isinstance(metric.value, FieldPath):
            found.add(metric.value.root)
        if metric.selection.event_types:
            found.add("event_type")
        if metric.selection.publishers:
            found.add("publisher_id")
    if found & {"host", "service"}:
        found = found - {"host", "service"} | {"publisher_id"}
    return sorted(found - set(RECORD_COLUMNS))


def _own_columns(metrics: Sequence[Metric], index: int) -> dict[str, Column]:
    metric, columns = metrics[index], columns_of(metrics, index)
    if isinstance(metric.value, Duration):
        return {}
    chosen = expressions.selected(metric.selection)
    made = {columns.selected: chosen} if metric.selection.conditions else {}
    for place, (_, path) in enumerate(metric.group_by):
        if needs_own_column(path):
            made[columns.group_value(place)] = F.when(chosen, expressions.text(path))
    if isinstance(metric.value, Constant) or has_root_item(metric):
        return made
    if metric.kind in COUNTED:
        name = columns.item if metric.kind == "top" else columns.text
        return made | {name: F.when(chosen, _text(metric.value))}
    if metric.kind in ("percentiles", "histogram"):
        made[columns.item] = F.when(chosen, _bucket(metric, _double(metric.value)))
    if _is_plain_latency(metric):
        return made
    return made | {columns.number: F.when(chosen, _number(metric.value))}


def _latency() -> Column:
    return F.unix_micros("logged") - F.unix_micros("time")


def _is_plain_latency(metric: Metric) -> bool:
    """Tell whether a metric is the latency of every notification: it needs no column of its own."""
    return isinstance(metric.value, Latency) and metric.selection == Selection()


def _number(value: FieldPath | Latency) -> Column:
    # Integers add up in a tenth of the time of decimals.
    return expressions.number(value) if isinstance(value, FieldPath) else _latency()


def _double(value: FieldPath | Latency) -> Column:
    return _number(value).cast("double") if isinstance(value, FieldPath) else _latency() / F.lit(1_000_000)


def _text(value: FieldPath | Latency) -> Column:
    return expressions.text(value) if isinstance(value, FieldPath) else _seconds(_latency()).cast("string")


def _seconds(microseconds: Column) -> Column:
    return (microseconds.cast("decimal(20,0)") * F.lit(_MICROSECOND).cast("decimal(7,6)")).cast(SUM)


def _bucket(metric: Metric, value: Column) -> Column:
    if metric.kind == "percentiles":
        return expressions.logarithmic_bucket(value).cast("string")
    return expressions.bounds_exceeded(value, metric.bounds).cast("string")


def _measures(metrics: Sequence[Metric], index: int) -> dict[str, Column]:
    metric, columns = metrics[index], columns_of(metrics, index)
    if isinstance(metric.value, Constant | Duration) or metric.kind == "top":
        return {}
    if metric.kind in COUNTED:
        text = F.col(columns.text)
        sketch = {columns.sketch: F.hll_sketch_agg(text, SKETCH_SIZE)} if metric.kind == "distinct" else {}
        return {columns.figure("count"): F.count(text)} | sketch
    value = _latency() if _is_plain_latency(metric) else F.col(columns.number)
    unit = _seconds if isinstance(metric.value, Latency) else lambda number: number
    made = {
        columns.figure("count"): F.count(value),
        columns.figure("sum"): unit(F.sum(value)).cast(SUM),
        columns.figure("low"): unit(F.min(value)).cast(NUMBER),
        columns.figure("high"): unit(F.max(value)).cast(NUMBER),
    }
    if metric.kind == "last":
        place = F.struct("time", "topic", "partition", "offset", unit(value).cast(NUMBER).alias("value"))
        made[columns.last] = F.max(F.when(value.isNotNull(), place))
    return made
