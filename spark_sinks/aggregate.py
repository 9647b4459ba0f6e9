"""Notifications to partials: figures of a metric, window and group that merge by addition.

A partial of one batch and one of another make the partial of both, exactly: counts and
sums (of decimals) add up, extremes and the latest are chosen by a total order, buckets and
items count, sketches unite. So nothing depends on how a topic was cut into batches.

For all metrics together the notifications are grouped once, by everything that any metric
tells apart; the metrics are then made of that small result.
"""

import functools
import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks import buckets, columns
from spark_sinks.columns import NUMBER, SUM
from spark_sinks.metrics import DAY, ERROR_PRIORITIES, Constant, Duration, Latency, Metric
from spark_sinks.paths import TREES, Path

_LAST = f"struct<time: timestamp, topic: string, partition: int, offset: bigint, value: {NUMBER}>"
PARTIAL = (
    "metric string, start bigint, width int, `group` array<string>, item string, count bigint, "
    f"sum {SUM}, low {NUMBER}, high {NUMBER}, last {_LAST}, sketch binary"
)
"""``start`` and ``width`` are seconds. ``item`` is the bucket or the text that is counted, for
kinds that have several figures."""

KEYS = ("metric", "start", "width", "group", "item")
SKETCH_SIZE = 12
"""Of the sketches of different values: an error of 1.04 / sqrt(2 ** 12), 1.6 percent."""

KEPT = ("topic", "partition", "offset", "logged", "reason", "message_id", "time", "misdated")
"""What is taken from every record, whatever the metrics are."""

_COUNTED = ("count", "rate", "distinct", "top")
# The columns that metric 3 has of its own: s3 whether it is selected, g3_0 its first group, i3
# its item, v3 its number, t3 its text.
_DIMENSIONS = "sgi"


def prepare(decoded: DataFrame, metrics: Sequence[Metric], *more: Column) -> DataFrame:
    """Take from decoded notifications what the metrics need: few small columns, fit to be kept."""
    own = [column for index, metric in enumerate(metrics) for column in _own(index, metric)]
    return decoded.select(*KEPT, *_roots(metrics), *own, *more)


def summarise(prepared: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Group once by all that any metric tells apart. Malformed records are counted by reason."""
    base = functools.reduce(math.gcd, (w.every for m in summed(metrics) for w in m.windows), DAY)
    start = F.floor(F.unix_seconds("time") / base) * base
    sound = F.col("reason").isNull()
    own = [name for name in prepared.columns if name[0] in _DIMENSIONS and name[1:2].isdigit()]
    dimensions = [F.when(sound, F.col(name)).alias(name) for name in (*_roots(metrics), *own)]
    return prepared.groupBy("reason", F.when(sound, start).alias("start"), *dimensions).agg(
        F.count("*").alias("count"),
        F.max("time").alias("newest"),
        F.sum(F.when(sound & F.col("misdated"), 1).otherwise(0)).alias("misdated"),
        *(each for index, metric in enumerate(metrics) for each in _measures(index, metric)),
    )


def partials(summary: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Roll a summary up into the partials of each metric."""
    made = [_partial(i, m) for i, m in enumerate(metrics) if not isinstance(m.value, Duration)]
    if not made:
        return summary.sparkSession.createDataFrame([], PARTIAL)
    sound = summary.where(F.col("reason").isNull())
    spread = sound.select(F.explode(F.array(*made)).alias("made")).where("made.count > 0")
    windowed = spread.select(F.explode("made.windows").alias("window"), "made.*")
    return merge(windowed.select("window.*", *windowed.columns[2:]), metrics)


def merge(rows: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Merge partials of the same metric, window, group and item."""
    united = F.lit(None).cast("binary")
    if any(metric.kind == "distinct" for metric in metrics):
        # Without the condition a row that has no sketch would get an empty one.
        united = F.when(F.count("sketch") > 0, F.hll_union_agg("sketch"))
    return rows.groupBy(*KEYS).agg(
        F.sum("count").alias("count"),
        F.sum("sum").cast(SUM).alias("sum"),
        F.min("low").alias("low"),
        F.max("high").alias("high"),
        F.max("last").alias("last"),
        united.alias("sketch"),
    )


def summed(metrics: Sequence[Metric]) -> list[Metric]:
    """List the metrics that are made of single notifications."""
    return [metric for metric in metrics if not isinstance(metric.value, Duration)]


def windows_of(metric: Metric, at: Column) -> Column:
    """Return the windows that hold a time in seconds, as an array of structs."""
    found = []
    for window in metric.windows:
        latest = F.floor(at / window.every) * window.every
        for step in range(window.width // window.every):
            start = (latest - step * window.every).cast("bigint").alias("start")
            found.append(F.struct(start, F.lit(window.width).alias("width")))
    return F.array(*found)


def texts(made: Sequence[Column]) -> Column:
    """Return an array of texts, which may be empty."""
    return F.array(*made).cast("array<string>")


def last(value: Column) -> Column:
    """Return a number with when and where it was, of which the latest is the largest."""
    return F.struct("time", "topic", "partition", "offset", value.alias("value"))


def item(metric: Metric, value: Column) -> Column:
    """Return the bucket of a number, for kinds that have one."""
    if metric.kind == "percentiles":
        return buckets.of_value(value).cast("string")
    if metric.kind == "histogram":
        return buckets.of_bounds(value, metric.bounds).cast("string")
    return F.lit(None).cast("string")


def _roots(metrics: Sequence[Metric]) -> list[str]:
    """List the texts of a notification that tell groups apart."""
    found = {"priority"}
    for metric in summed(metrics):
        found |= {path.root for _, path in metric.group_by if path.root not in TREES}
        if metric.selection.event_types:
            found.add("event_type")
        if metric.selection.publishers:
            found.add("publisher_id")
    if found & {"host", "service"}:
        found = found - {"host", "service"} | {"publisher_id"}
    return sorted(found - set(KEPT))


def _own(index: int, metric: Metric) -> list[Column]:
    if isinstance(metric.value, Duration):
        return []
    chosen = columns.selected(metric.selection)
    made = [chosen.alias(f"s{index}")] if metric.selection.conditions else []
    for place, (_, path) in enumerate(metric.group_by):
        if _is_own(path):
            made.append(F.when(chosen, columns.text(path)).alias(f"g{index}_{place}"))
    if isinstance(metric.value, Constant):
        return made
    if metric.kind in _COUNTED:
        name = "i" if metric.kind == "top" else "t"
        return [*made, F.when(chosen, _text(metric.value)).alias(f"{name}{index}")]
    value = F.when(chosen, _number(metric.value))
    if metric.kind in ("percentiles", "histogram"):
        made.append(item(metric, value).alias(f"i{index}"))
    return [*made, value.alias(f"v{index}")]


def _is_own(path: Path) -> bool:
    return path.root in TREES or path.root in KEPT


def _number(value: Path | Latency) -> Column:
    if isinstance(value, Path):
        return columns.number(value)
    return ((F.unix_micros("logged") - F.unix_micros("time")) / F.lit(1_000_000)).cast(NUMBER)


def _text(value: Path | Latency) -> Column:
    return columns.text(value) if isinstance(value, Path) else _number(value).cast("string")


def _measures(index: int, metric: Metric) -> list[Column]:
    if isinstance(metric.value, Constant | Duration) or metric.kind == "top":
        return []
    if metric.kind in _COUNTED:
        text = F.col(f"t{index}")
        sketch = F.hll_sketch_agg(text, SKETCH_SIZE).alias(f"sketch{index}")
        return [F.count(text).alias(f"count{index}"), *([sketch] if metric.kind == "distinct" else [])]
    value = F.col(f"v{index}")
    made = [
        F.count(value).alias(f"count{index}"),
        F.sum(value).alias(f"sum{index}"),
        F.min(value).alias(f"low{index}"),
        F.max(value).alias(f"high{index}"),
    ]
    if metric.kind == "last":
        made.append(F.max(F.when(value.isNotNull(), last(value))).alias(f"last{index}"))
    return made


def _partial(index: int, metric: Metric) -> Column:
    chosen = columns.selected_by_texts(metric.selection)
    if metric.selection.conditions:
        chosen = F.col(f"s{index}")
    group = [
        F.col(f"g{index}_{place}") if _is_own(path) else columns.text(path)
        for place, (_, path) in enumerate(metric.group_by)
    ]
    figures = _constant(metric) if isinstance(metric.value, Constant) else _measured(index, metric)
    types = {"item": "string", "count": "bigint", "sum": SUM, "low": NUMBER, "high": NUMBER, "last": _LAST}
    row = {name: figures.get(name, F.lit(None)).cast(kind) for name, kind in types.items()}
    row["sketch"] = figures.get("sketch", F.lit(None).cast("binary"))
    return F.when(
        chosen,
        F.struct(
            windows_of(metric, F.col("start")).alias("windows"),
            F.lit(metric.name).alias("metric"),
            texts(group).alias("group"),
            *(column.alias(name) for name, column in row.items()),
        ),
    )


def _constant(metric: Metric) -> dict[str, Column]:
    """Make the figures of a metric that counts notifications, or a number for each."""
    count, number = F.col("count"), F.lit(_constant_of(metric)).cast(NUMBER)
    if metric.kind == "error_share":
        return {"count": count, "sum": F.when(F.col("priority").isin(*ERROR_PRIORITIES), count).otherwise(0)}
    nowhere = [F.lit(None).cast(kind) for kind in ("string", "int", "bigint")]
    return {
        "count": count,
        "sum": (count * number).cast(SUM),
        "low": number,
        "high": number,
        "last": F.struct("newest", *nowhere, number),
    }


def _constant_of(metric: Metric) -> str:
    return str(metric.value.number) if isinstance(metric.value, Constant) else "1"


def _measured(index: int, metric: Metric) -> dict[str, Column]:
    if metric.kind == "top":
        counted = F.when(F.col(f"i{index}").isNotNull(), F.col("count")).otherwise(0)
        return {"item": F.col(f"i{index}"), "count": counted}
    names = {"count", "sum", "low", "high"} if metric.kind not in _COUNTED else {"count"}
    names |= {"last"} if metric.kind == "last" else {"sketch"} if metric.kind == "distinct" else set()
    figures = {name: F.col(f"{name}{index}") for name in names}
    if metric.kind in ("percentiles", "histogram"):
        figures["item"] = F.col(f"i{index}")
    return figures
