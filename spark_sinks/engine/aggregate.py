"""Notifications to a summary: grouped once, by everything that any metric tells apart.

This is what Spark does, where the notifications are; ``rollup`` makes the partials of each
metric of the small result.
"""

import functools
import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.engine import buckets, expressions
from spark_sinks.engine.expressions import NUMBER, SUM
from spark_sinks.language.field_paths import TREES, Path
from spark_sinks.language.metrics import (
    COUNTED,
    DAY,
    SKETCH_SIZE,
    Constant,
    Duration,
    Latency,
    Metric,
    Selection,
)

KEPT = ("topic", "partition", "offset", "logged", "reason", "message_id", "time", "misdated")
"""What is taken from every record, whatever the metrics are."""

# The columns that metric 3 has of its own: s3 whether it is selected, g3_0 its first group, i3
# its item, v3 its number, t3 its text. Metrics that are of the same share those of the first.
_DIMENSIONS = "sgi"
_MICROSECOND = "0.000001"


def prepare(decoded: DataFrame, metrics: Sequence[Metric], *more: Column) -> DataFrame:
    """Take from decoded notifications what the metrics need: few small columns, fit to be kept."""
    own = {name: column for index in range(len(metrics)) for name, column in _own(metrics, index).items()}
    named = [column.alias(name) for name, column in own.items()]
    return decoded.select(*KEPT, *_roots(metrics), *named, *more)


def summarise(prepared: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Group once by all that any metric tells apart. Malformed records are counted by reason.

    For metric 3 there are ``group3``, a JSON array of texts, and, unless it is of every
    notification, ``s3``: whether it is of these.
    """
    base = functools.reduce(math.gcd, (w.every for m in summed(metrics) for w in m.windows), DAY)
    start = F.floor(F.unix_seconds("time") / base) * base
    sound = F.col("reason").isNull()
    own = [name for name in prepared.columns if name[0] in _DIMENSIONS and name[1:2].isdigit()]
    dimensions = [F.when(sound, F.col(name)).alias(name) for name in (*_roots(summed(metrics)), *own)]
    measures = {n: c for i in range(len(metrics)) for n, c in _measures(metrics, i).items()}
    grouped = prepared.groupBy("reason", F.when(sound, start).alias("start"), *dimensions).agg(
        F.count("*").alias("count"),
        F.max("time").alias("newest"),
        F.sum(F.when(sound & F.col("misdated"), 1).otherwise(0)).alias("misdated"),
        *(column.alias(name) for name, column in measures.items()),
    )
    return grouped.select("*", *_told(metrics))


def summed(metrics: Sequence[Metric]) -> list[Metric]:
    """List the metrics that are made of single notifications."""
    return [metric for metric in metrics if not isinstance(metric.value, Duration)]


def group(made: Sequence[Column]) -> Column:
    """Spell texts as a JSON array."""
    return (
        F.to_json(F.array(*made).cast("array<string>"), {"ignoreNullFields": "false"})
        if made
        else F.lit("[]")
    )


def twin(metrics: Sequence[Metric], index: int) -> int:
    """Return the first metric that takes the same from the same notifications."""
    return next(i for i, metric in enumerate(metrics) if _taken(metric) == _taken(metrics[index]))


def item_of_text(metric: Metric) -> bool:
    """Tell whether what a metric counts is among the texts that tell groups apart."""
    return metric.kind == "top" and isinstance(metric.value, Path) and not is_own(metric.value)


def _taken(metric: Metric) -> object:
    item = (
        metric.bounds if metric.kind == "histogram" else metric.kind in ("percentiles", "top") and metric.kind
    )
    return metric.selection, metric.value, metric.kind in COUNTED, item


def _told(metrics: Sequence[Metric]) -> list[Column]:
    made = []
    for index, metric in enumerate(metrics):
        if isinstance(metric.value, Duration):
            continue
        texts = [
            F.col(f"g{index}_{place}") if is_own(path) else expressions.text(path)
            for place, (_, path) in enumerate(metric.group_by)
        ]
        made.append(group(texts).alias(f"group{index}"))
        chosen = metric.selection
        if not chosen.conditions and (chosen.event_types or chosen.publishers or chosen.priorities):
            made.append(expressions.selected_by_texts(chosen).alias(f"s{index}"))
        if item_of_text(metric) and isinstance(metric.value, Path):
            made.append(expressions.text(metric.value).alias(f"i{index}"))
    return made


def _roots(grouped: Sequence[Metric]) -> list[str]:
    """List the texts of a notification that tell groups apart."""
    found = {"priority"}
    for metric in grouped:
        found |= {path.root for _, path in metric.group_by if path.root not in TREES}
        if item_of_text(metric) and isinstance(metric.value, Path):
            found.add(metric.value.root)
        if metric.selection.event_types:
            found.add("event_type")
        if metric.selection.publishers:
            found.add("publisher_id")
    if found & {"host", "service"}:
        found = found - {"host", "service"} | {"publisher_id"}
    return sorted(found - set(KEPT))


def _own(metrics: Sequence[Metric], index: int) -> dict[str, Column]:
    metric, same = metrics[index], twin(metrics, index)
    if isinstance(metric.value, Duration):
        return {}
    chosen = expressions.selected(metric.selection)
    made = {f"s{index}": chosen} if metric.selection.conditions else {}
    for place, (_, path) in enumerate(metric.group_by):
        if is_own(path):
            made[f"g{index}_{place}"] = F.when(chosen, expressions.text(path))
    if isinstance(metric.value, Constant) or item_of_text(metric):
        return made
    if metric.kind in COUNTED:
        name = "i" if metric.kind == "top" else "t"
        return made | {f"{name}{same}": F.when(chosen, _text(metric.value))}
    if metric.kind in ("percentiles", "histogram"):
        made[f"i{same}"] = F.when(chosen, _bucket(metric, _double(metric.value)))
    if _is_plain_latency(metric):
        return made
    return made | {f"v{same}": F.when(chosen, _number(metric.value))}


def is_own(path: Path) -> bool:
    """Tell whether a path leads to what is no text that tells groups apart."""
    return path.root in TREES or path.root in KEPT


def _latency() -> Column:
    return F.unix_micros("logged") - F.unix_micros("time")


def _is_plain_latency(metric: Metric) -> bool:
    """Tell whether a metric is the latency of everything, which is the difference of what is kept anyway."""
    return isinstance(metric.value, Latency) and metric.selection == Selection()


def _number(value: Path | Latency) -> Column:
    # Whole microseconds add up in a tenth of the time that decimals take.
    return expressions.number(value) if isinstance(value, Path) else _latency()


def _double(value: Path | Latency) -> Column:
    return _number(value).cast("double") if isinstance(value, Path) else _latency() / F.lit(1_000_000)


def _text(value: Path | Latency) -> Column:
    return expressions.text(value) if isinstance(value, Path) else _seconds(_latency()).cast("string")


def _seconds(microseconds: Column) -> Column:
    return (microseconds.cast("decimal(20,0)") * F.lit(_MICROSECOND).cast("decimal(7,6)")).cast(SUM)


def _bucket(metric: Metric, value: Column) -> Column:
    if metric.kind == "percentiles":
        return buckets.of_value(value).cast("string")
    return buckets.of_bounds(value, metric.bounds).cast("string")


def _measures(metrics: Sequence[Metric], index: int) -> dict[str, Column]:
    metric, same = metrics[index], twin(metrics, index)
    if isinstance(metric.value, Constant | Duration) or metric.kind == "top":
        return {}
    if metric.kind in COUNTED:
        text = F.col(f"t{same}")
        sketch = {f"sketch{index}": F.hll_sketch_agg(text, SKETCH_SIZE)} if metric.kind == "distinct" else {}
        return {f"count{same}": F.count(text)} | sketch
    value = _latency() if _is_plain_latency(metric) else F.col(f"v{same}")
    unit = _seconds if isinstance(metric.value, Latency) else lambda number: number
    made = {
        f"count{same}": F.count(value),
        f"sum{same}": unit(F.sum(value)).cast(SUM),
        f"low{same}": unit(F.min(value)).cast(NUMBER),
        f"high{same}": unit(F.max(value)).cast(NUMBER),
    }
    if metric.kind == "last":
        place = F.struct("time", "topic", "partition", "offset", unit(value).cast(NUMBER).alias("value"))
        made[f"last{index}"] = F.max(F.when(value.isNotNull(), place))
    return made
