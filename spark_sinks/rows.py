"""Merged partials to metric rows, which are the same in every sink."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks import buckets
from spark_sinks.metrics import Metric

ROW = (
    "metric string, unit string, window_start timestamp, window_end timestamp, "
    "`group` map<string, string>, value double"
)
UNIT = ("metric", "window_start", "window_end")
"""What a batch replaces as a whole: a row may be gone that an earlier batch had written."""

_KEYS = ("metric", "start", "width", "group")


def of_partials(merged: DataFrame, metrics: Sequence[Metric]) -> DataFrame:
    """Make the rows of merged partials. A metric that nothing was counted for has none."""
    # One plan for each sort of kinds, not for each metric: planning is what takes the time.
    told = merged.where(F.col("metric").isin(*(m.name for m in metrics))).withColumn("told", _told(metrics))
    kinds = {metric.kind for metric in metrics}
    made = [make(told.where(F.col("told.kind") == kind)) for kind, make in _SEVERAL.items() if kind in kinds]
    if single := [kind for kind in _SINGLE if kind in kinds]:
        made.append(_single(told.where(F.col("told.kind").isin(*single)), single))
    return functools.reduce(DataFrame.unionByName, made).where(F.col("value").isNotNull())


def _told(metrics: Sequence[Metric]) -> Column:
    """Return what was declared of the row's metric."""
    known: list[Column] = []
    for metric in metrics:
        struct = F.struct(
            F.lit(metric.kind).alias("kind"),
            F.lit(metric.unit).alias("unit"),
            _texts(name for name, _ in metric.group_by).alias("names"),
            F.array(*map(F.lit, metric.percentiles)).alias("percentiles"),
            _texts([*(f"{bound:g}" for bound in metric.bounds), "+Inf"]).alias("bounds"),
            F.lit(metric.k).alias("k"),
        )
        known += [F.lit(metric.name), struct]
    return F.create_map(*known)[F.col("metric")]


def _texts(found: Iterable[str]) -> Column:
    return F.array(*map(F.lit, found)).cast("array<string>")


def _row(names: Mapping[str, Column], value: Column) -> list[Column]:
    keys = F.concat(F.col("told.names"), _texts(names))
    values = F.concat(F.col("group"), F.array(*names.values()).cast("array<string>"))
    return [
        F.col("metric"),
        F.col("told.unit").alias("unit"),
        F.timestamp_seconds("start").alias("window_start"),
        F.timestamp_seconds(F.col("start") + F.col("width")).alias("window_end"),
        F.map_from_arrays(keys, values).alias("group"),
        value.cast("double").alias("value"),
    ]


def _single(mine: DataFrame, kinds: Sequence[str]) -> DataFrame:
    value = F.lit(None).cast("double")
    for kind in kinds:
        value = F.when(F.col("told.kind") == kind, _SINGLE[kind]().cast("double")).otherwise(value)
    return mine.select(*_row({}, value))


def _share() -> Column:
    return F.col("sum").cast("double") / F.col("count")


def _gap() -> Column:
    end = (F.col("start") + F.col("width")) * 1_000_000
    return (end - F.unix_micros("last.time")) / F.lit(1_000_000)


def _distinct() -> Column:
    # A sketch that was filled and one that was united estimate differently from the same
    # registers. United with itself it has been united, however many batches there were.
    return F.hll_sketch_estimate(F.hll_union("sketch", "sketch"))


_SINGLE: dict[str, Callable[[], Column]] = {
    "count": lambda: F.col("count"),
    "rate": lambda: F.col("count") / F.col("width"),
    "sum": lambda: F.col("sum"),
    "min": lambda: F.col("low"),
    "max": lambda: F.col("high"),
    "avg": _share,
    "last": lambda: F.col("last.value"),
    "distinct": _distinct,
    "error_share": _share,
    "gap": _gap,
}


def _percentiles(mine: DataFrame) -> DataFrame:
    every = Window.partitionBy(*_KEYS)
    ranked = mine.withColumn("bucket", F.col("item").cast("int"))
    so_far = every.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # A bucket's middle may lie beyond what was there.
    value = F.greatest(
        F.min("low").over(every), F.least(F.max("high").over(every), buckets.middle(F.col("bucket")))
    )
    ranked = ranked.withColumns(
        {"until": F.sum("count").over(so_far), "all": F.sum("count").over(every), "at": value}
    )
    spread = ranked.withColumn("percentile", F.explode("told.percentiles"))
    rank = F.ceil(F.col("percentile") / 100 * F.col("all"))
    found = spread.where((rank <= F.col("until")) & (rank > F.col("until") - F.col("count")))
    return found.select(*_row({"percentile": _spell("percentile")}, F.col("at")))


def _histogram(mine: DataFrame) -> DataFrame:
    spread = mine.select("*", F.posexplode("told.bounds").alias("place", "le"))
    within = F.when(F.col("item").cast("int") <= F.col("place"), F.col("count")).otherwise(0)
    counted = spread.groupBy(*_KEYS, "told", "le").agg(F.sum(within).alias("count"))
    return counted.select(*_row({"le": F.col("le")}, F.col("count")))


def _top(mine: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_KEYS).orderBy(F.desc("count"), "item")
    first = mine.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= F.col("told.k"))
    names = {"rank": F.col("rank").cast("string"), "value": F.col("item")}
    return first.select(*_row(names, F.col("count")))


def _spell(name: str) -> Column:
    return F.regexp_replace(F.col(name).cast("string"), r"\.0$", "")


_SEVERAL: dict[str, Callable[[DataFrame], DataFrame]] = {
    "percentiles": _percentiles,
    "histogram": _histogram,
    "top": _top,
}
