"""Partials: figures of a metric, window and group that can be merged exactly.

Counts and sums (of decimals) add up, minima, maxima and the latest value follow a total order,
buckets and items are counted, sketches are united. So the result does not depend on the batches.

There are few partials: they are Arrow tables in the driver. Imports no pyspark.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.engine.metric_columns import MetricColumns, columns_of, has_root_item
from spark_sinks.language.metrics import COUNTED, ERROR_PRIORITIES, Constant, Duration, Metric

NUMBER = pa.decimal128(29, 9)
SUM = pa.decimal128(38, 9)
TIME = pa.timestamp("us", tz="UTC")
LAST = ["last_time", "last_topic", "last_partition", "last_offset", "last_value"]
"""The time, position and value of the latest value; also the order in which the latest is chosen."""

PARTIAL = pa.schema(
    {
        "metric": pa.string(),
        "start": pa.int64(),
        "width": pa.int32(),
        "group": pa.string(),
        "item": pa.string(),
        "count": pa.int64(),
        "sum": SUM,
        "low": NUMBER,
        "high": NUMBER,
        **dict(zip(LAST, (TIME, pa.string(), pa.int32(), pa.int64(), NUMBER), strict=True)),
        "sketch": pa.binary(),
    }
)
"""``start`` and ``width`` are seconds, ``group`` is a JSON array of texts. ``item`` is a bucket or a
counted text, for kinds with several figures."""

KEYS = ["metric", "start", "width", "group", "item"]
Unite = Callable[[pa.Table], pa.Table]
"""Unites the sketches of the same keys. Only Spark can."""


def partials(summary: pa.Table, metrics: Sequence[Metric], unite: Unite) -> pa.Table:
    """Roll a summary up into the partials of each metric."""
    sound = summary.filter(pc.is_null(summary["reason"]))
    made = [PARTIAL.empty_table()]
    for index, metric in enumerate(metrics):
        if not isinstance(metric.value, Duration):
            columns = columns_of(metrics, index)
            mine = sound.filter(sound[columns.selected]) if columns.selected in sound.column_names else sound
            figures = {"group": mine[columns.group], **_figures(mine, metric, columns)}
            counted = pc.greater(figures["count"], 0)
            made += [merge(each.filter(counted), unite) for each in spread(metric, mine["start"], figures)]
    return merge(pa.concat_tables(made), unite)


def spread(metric: Metric, seconds: pa.ChunkedArray, figures: dict[str, pa.ChunkedArray]) -> list[pa.Table]:
    """Return the figures for each window that contains a time."""
    size, found = len(seconds), []
    for window in metric.windows:
        latest = pc.multiply(pc.floor(pc.divide(pc.cast(seconds, pa.float64()), window.every)), window.every)
        for step in range(window.width // window.every):
            row: dict[str, object] = dict(figures)
            row["metric"] = pa.repeat(metric.name, size)
            row["start"] = pc.cast(pc.subtract(latest, step * window.every), pa.int64())
            row["width"] = pa.repeat(pa.scalar(window.width, pa.int32()), size)
            columns = [row.get(field.name, pa.nulls(size, field.type)) for field in PARTIAL]
            found.append(pa.table(columns, names=PARTIAL.names).cast(PARTIAL))
    return found


def merge(rows: pa.Table, unite: Unite) -> pa.Table:
    """Merge partials of the same metric, window, group and item."""
    wanted = [("count", "sum"), ("sum", "sum"), ("low", "min"), ("high", "max")]
    dated = rows["last_time"].null_count < len(rows)
    if dated:
        order = [(name, "ascending") for name in LAST]
        rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        place = pc.if_else(pc.is_valid(rows["last_time"]), pa.array(range(len(rows)), pa.int64()), None)
        rows = rows.append_column("row", place)
        wanted.append(("row", "max"))
    made = rows.group_by(KEYS).aggregate(wanted)
    names = {f"{name}_{function}": name for name, function in wanted}
    made = made.rename_columns([names.get(name, name) for name in made.column_names])
    for name in LAST:
        kept = rows[name].take(made["row"]) if dated else pa.nulls(len(made), PARTIAL.field(name).type)
        made = made.append_column(name, kept)
    if rows["sketch"].null_count == len(rows):
        made = made.append_column("sketch", pa.nulls(len(made), pa.binary()))
    else:
        united = unite(rows.select([*KEYS, "sketch"]).filter(pc.is_valid(rows["sketch"])))
        made = _matched(made, united)
    return made.select(PARTIAL.names).cast(PARTIAL)


def _matched(made: pa.Table, united: pa.Table) -> pa.Table:
    # For Arrow's join, null does not equal null, and an item may be null.
    found = dict(
        zip(zip(*(united[name].to_pylist() for name in KEYS), strict=True), united["sketch"], strict=True)
    )
    keys = zip(*(made[name].to_pylist() for name in KEYS), strict=True)
    return made.append_column("sketch", pa.array([found.get(key) for key in keys], pa.binary()))


def _figures(mine: pa.Table, metric: Metric, columns: MetricColumns) -> dict[str, pa.ChunkedArray]:
    if isinstance(metric.value, Constant):
        return _constant(mine, metric, metric.value)
    if metric.kind == "top":
        item = mine[columns.root_item if has_root_item(metric) else columns.item]
        return {"item": item, "count": pc.if_else(pc.is_valid(item), mine["count"], 0)}
    names = ["count"] if metric.kind in COUNTED else ["count", "sum", "low", "high"]
    figures = {name: mine[columns.figure(name)] for name in names}
    if metric.kind in ("percentiles", "histogram"):
        figures["item"] = mine[columns.item]
    if metric.kind == "distinct":
        figures["sketch"] = mine[columns.sketch]
    if metric.kind == "last":
        figures |= dict(zip(LAST, mine[columns.last].combine_chunks().flatten(), strict=True))
    return figures


def _constant(mine: pa.Table, metric: Metric, value: Constant) -> dict[str, pa.ChunkedArray]:
    """Make the figures of a metric that counts notifications, or adds a constant for each."""
    count = mine["count"]
    if metric.kind == "error_share":
        wrong = pc.is_in(mine["priority"], pa.array(ERROR_PRIORITIES))
        return {"count": count, "sum": pc.cast(pc.if_else(wrong, count, 0), SUM)}
    number = Decimal(str(value.number)).quantize(Decimal("1e-9"), ROUND_HALF_UP)
    figures = {"count": count, "low": pa.repeat(pa.scalar(number, NUMBER), len(mine))}
    figures["high"] = figures["low"]
    figures["sum"] = pa.array([number * each for each in count.to_pylist()], SUM)
    if metric.kind in ("last", "gap"):
        figures |= {"last_time": mine["newest"], "last_value": figures["low"]}
    return figures
