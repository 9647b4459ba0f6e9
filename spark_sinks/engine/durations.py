"""Durations: starts and ends are stored as they come, and paired when rows are made.

A start may come batches before its end, or after it. So each start and each end is stored beside
the partials. An end is paired with the latest start before it with the same key, which does not
depend on the order of arrival.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.decode.full import POSITION
from spark_sinks.engine import buckets, expressions, rollup
from spark_sinks.engine.metric_columns import MetricColumns, columns_of, needs_own_column
from spark_sinks.language.metrics import Duration, Metric

EVENT = pa.schema(
    {
        "metric": pa.string(),
        "pair": pa.int64(),
        "ending": pa.bool_(),
        "time": rollup.TIME,
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "group": pa.string(),
    }
)
"""``pair`` is a hash of the metric, the key, and the common part of the event types."""


def events(metrics: Sequence[Metric]) -> list[Column]:
    """Return for each duration which pair a notification belongs to, whether it ends it, and its groups."""
    made = []
    for index, metric in enumerate(metrics):
        if isinstance(metric.value, Duration):
            made += _event(columns_of(metrics, index), metric, metric.value)
    return made


def _event(columns: MetricColumns, metric: Metric, value: Duration) -> list[Column]:
    event_type = F.col("event_type")
    ending = event_type.endswith(value.end)
    suffix = F.when(ending, len(value.end)).otherwise(len(value.start))
    operation = F.substr(event_type, F.lit(1), F.length(event_type) - suffix)
    found = expressions.selected(metric.selection) & (ending | event_type.endswith(value.start))
    key = F.when(found, F.coalesce(*(expressions.text(path) for path in value.keys)))
    pair = F.xxhash64(F.lit(metric.name), operation, key)
    return [
        F.when(key.isNotNull(), pair).alias(columns.pair),
        ending.alias(columns.is_end),
        *(
            F.when(found, expressions.text(path)).alias(columns.duration_group_value(place))
            for place, (_, path) in enumerate(metric.group_by)
            if needs_own_column(path)
        ),
    ]


def any_of(metrics: Sequence[Metric]) -> bool:
    """Return whether any metric is of durations."""
    return any(isinstance(metric.value, Duration) for metric in metrics)


def is_event(metric: Metric, value: Duration) -> Column:
    """Return whether a notification may be a start or an end, judged by its texts."""
    event_type = F.col("event_type")
    chosen = expressions.selected_by_texts(metric.selection)
    return chosen & (event_type.endswith(value.end) | event_type.endswith(value.start))


def rows_of(prepared: DataFrame, metrics: Sequence[Metric]) -> pa.Table:
    """Return the starts and ends among prepared notifications."""
    sound = prepared.where(F.col("reason").isNull())
    found = [EVENT.empty_table()]
    for index, metric in enumerate(metrics):
        if isinstance(metric.value, Duration):
            columns = columns_of(metrics, index)
            group = [
                F.col(columns.duration_group_value(place))
                if needs_own_column(path)
                else expressions.text(path)
                for place, (_, path) in enumerate(metric.group_by)
            ]
            own = [F.col(columns.pair).alias("pair"), F.col(columns.is_end).alias("ending")]
            mine = sound.where(F.col(columns.pair).isNotNull())
            table = mine.select(*own, "time", *POSITION, _packed(group).alias("group")).toArrow()
            groups = table["group"].combine_chunks().dictionary_encode()
            spelled = pa.array(map(_unpacked, groups.dictionary.to_pylist()), pa.string())
            table = table.set_column(table.column_names.index("group"), "group", spelled.take(groups.indices))
            table = table.append_column("metric", pa.repeat(metric.name, len(table)))
            found.append(table.select(EVENT.names).cast(EVENT))
    return pa.concat_tables(found)


def _packed(texts: Sequence[Column]) -> Column:
    # JSON for each of a million events would take a second. There are few distinct groups.
    each = (
        F.when(t.isNull(), "-").otherwise(F.concat(F.length(t).cast("string"), F.lit(":"), t)) for t in texts
    )
    return F.concat(*each) if texts else F.lit("")


def _unpacked(packed: str) -> str:
    found: list[str | None] = []
    while packed:
        if packed[0] == "-":
            found.append(None)
            packed = packed[1:]
        else:
            size, _, rest = packed.partition(":")
            found.append(rest[: int(size)])
            packed = rest[int(size) :]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Reach:
    """The time range in microseconds that new events may affect: an end lies ``within`` of its start."""

    first: int
    last: int
    within: int
    width: int

    @property
    def loaded(self) -> tuple[int, int]:
        """The range of events to load: complete windows of every ``touched`` end, and their starts."""
        return self.first - self.width - self.within, self.last + self.within + self.width


def reach(new: pa.Table, metrics: Sequence[Metric]) -> Reach:
    """Return the time range that the events of a batch may have changed."""
    found = [(metric, metric.value) for metric in metrics if isinstance(metric.value, Duration)]
    within = max(value.within for _, value in found)
    width = max(window.width for metric, _ in found for window in metric.windows)
    first, last = pc.min_max(new["time"].cast(pa.int64())).as_py().values()
    return Reach(first, last, within * _SECOND, width * _SECOND)


def touched(events: pa.Table, new: pa.Table, reach: Reach) -> pa.Table:
    """Return the ends whose durations the events of a batch may have changed or added.

    Ends before all new events are left out: none of these can be their start. So are ends beyond
    the reach of the latest: their durations are unchanged, and not all of their windows is loaded.
    """
    time = pc.cast(events["time"], pa.int64())
    near = pc.and_(pc.greater_equal(time, reach.first), pc.less_equal(time, reach.last + reach.within))
    near = pc.and_(near, events["ending"])
    return events.filter(pc.and_(near, pc.is_in(events["pair"], pc.unique(new["pair"]))))


def units(ends: pa.Table, metrics: Sequence[Metric]) -> list[pa.Table]:
    """Return the windows of ends, of all metrics."""
    return [
        each
        for metric in metrics
        if isinstance(metric.value, Duration)
        for each in windows(ends.filter(pc.equal(ends["metric"], metric.name)), metric)
    ]


def partials(events: pa.Table, metrics: Sequence[Metric], unite: rollup.Unite) -> pa.Table:
    """Pair starts and ends, and make partials of the durations."""
    paired = _paired(events)
    made = [rollup.PARTIAL.empty_table()]
    for metric in metrics:
        if isinstance(metric.value, Duration):
            mine = paired.filter(pc.equal(paired["metric"], metric.name))
            mine = mine.filter(pc.less_equal(mine["took"], metric.value.within * _SECOND))
            # All at once: each step of a sliding window contributes.
            made.append(rollup.merge(pa.concat_tables(windows(mine, metric)), unite))
    return pa.concat_tables(made)


def windows(ends: pa.Table, metric: Metric) -> list[pa.Table]:
    """Return the figures of ends in each of their windows; only the windows of ends that are not paired."""
    figures = {"group": ends["group"]}
    if "took" in ends.column_names:
        value = pc.multiply(
            pc.cast(ends["took"], pa.decimal128(19, 0)), pa.scalar(_MICROSECOND, pa.decimal128(7, 6))
        )
        figures["sum"] = pc.cast(value, rollup.SUM)
        figures["low"] = figures["high"] = figures["last_value"] = pc.cast(value, rollup.NUMBER)
        figures["count"] = pa.repeat(pa.scalar(1, pa.int64()), len(ends))
        figures["item"] = buckets.items(pc.divide(pc.cast(ends["took"], pa.float64()), 1e6), metric)
        if metric.kind in ("last", "gap"):
            figures |= {f"last_{name}": ends[name] for name in ("time", "topic", "partition", "offset")}
    seconds = pc.divide(pc.cast(ends["time"], pa.int64()), _SECOND)
    return rollup.spread(metric, seconds, figures)


def _paired(events: pa.Table) -> pa.Table:
    """Return the ends that have a start before them, with the duration ``took`` in microseconds."""
    known = events.append_column("order", pc.cast(events["ending"], pa.int8()))
    known = known.sort_by([(name, "ascending") for name in ("pair", "time", "order")]).combine_chunks()
    time = pc.cast(known["time"], pa.int64())
    begun = pc.fill_null_forward(pc.if_else(known["ending"], None, time))
    whose = pc.fill_null_forward(pc.if_else(known["ending"], None, known["pair"]))
    known = known.append_column("took", pc.subtract(time, begun))
    # The start must belong to the same pair.
    found = pc.fill_null(pc.equal(whose, known["pair"]), False)  # noqa: FBT003 - its only way
    return known.filter(pc.and_(known["ending"], found))


_SECOND = 1_000_000
_MICROSECOND = pa.scalar("0.000001").cast(pa.decimal128(7, 6)).as_py()
