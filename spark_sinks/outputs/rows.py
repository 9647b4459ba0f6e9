"""Makes metric rows from merged partials. The rows are the same in every sink."""

import datetime
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from spark_sinks.engine import buckets, rollup
from spark_sinks.language.metrics import Metric

ROW = pa.schema(
    {
        "metric": pa.string(),
        "unit": pa.string(),
        "window_start": rollup.TIME,
        "window_end": rollup.TIME,
        "group": pa.map_(pa.string(), pa.string()),
        "value": pa.float64(),
    }
)
WINDOW_KEY = ("metric", "window_start", "window_end")
"""A batch replaces all rows with the same values of these: it may have fewer rows than an earlier one."""

_COLUMNS = ("start", "width", "item", "count", "sum", "low", "high", "last_time", "last_value")

Group = list[tuple[str, str | None]]
Estimate = Callable[[pa.ChunkedArray], list[float]]


class MergedPartial(NamedTuple):
    """One merged partial, without its keys."""

    start: int
    width: int
    item: str | None
    counted: int
    sum: Decimal | None
    low: Decimal | None
    high: Decimal | None
    last_time: datetime.datetime | None
    last_value: Decimal | None
    distinct: float | None


def of_partials(merged: pa.Table, metrics: Sequence[Metric], estimate: Estimate) -> pa.Table:
    """Make the rows of merged partials. A metric without counted notifications has no rows."""
    known = {metric.name: metric for metric in metrics}
    order = [(name, "ascending") for name in ("metric", "start", "width", "group")]
    merged = merged.sort_by(order)
    found: list[tuple[Any, ...]] = []
    for (name, start, width, group), parts in itertools.groupby(
        _parts(merged, estimate), lambda pair: pair[0]
    ):
        metric = known.get(name)
        if metric is None:
            continue
        names: Group = list(zip((n for n, _ in metric.group_by), json.loads(group), strict=True))
        several = _SEVERAL.get(metric.kind, _single)
        for more, value in several(metric, [part for _, part in parts]):
            if value is not None:
                found.append((name, metric.unit, _micros(start), _micros(start + width), names + more, value))
    columns = zip(*found, strict=True) if found else [()] * len(ROW)
    return pa.table(
        [pa.array(each, field.type) for each, field in zip(columns, ROW, strict=True)], schema=ROW
    )


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its times as text in UTC and its group as a mapping."""
    times = {name: row[name].strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("window_start", "window_end")}
    return row | times | {"group": dict(row["group"])}


def from_json(found: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Make a table of rows that are ``as_json``."""
    listed = []
    for row in found:
        times = {name: datetime.datetime.fromisoformat(row[name]) for name in ("window_start", "window_end")}
        listed.append({**row, **times, "group": list(row["group"].items())})
    return pa.Table.from_pylist(listed, ROW)


def as_flat_rows(found: pa.Table) -> list[dict[str, Any]]:
    """Return rows of texts and numbers only: the group is a JSON object in ASCII."""
    listed = map(as_json, found.to_pylist())
    return [row | {"group": json.dumps(row["group"], sort_keys=True)} for row in listed]


def _micros(seconds: int) -> int:
    return seconds * 1_000_000


def _parts(merged: pa.Table, estimate: Estimate) -> Iterator[tuple[tuple[str, int, int, str], MergedPartial]]:
    sketched = merged["sketch"].is_valid().to_pylist()
    guessed = iter(estimate(merged["sketch"].drop_null()) if any(sketched) else ())
    distinct = [next(guessed) if one else None for one in sketched]
    keys = zip(*(merged[name].to_pylist() for name in ("metric", "start", "width", "group")), strict=True)
    rows = zip(*(merged[name].to_pylist() for name in _COLUMNS), distinct, strict=True)
    return zip(keys, map(MergedPartial._make, rows), strict=True)


def _single(metric: Metric, parts: list[MergedPartial]) -> Iterator[tuple[Group, float | None]]:
    value = _SINGLE[metric.kind](parts[0])
    yield [], None if value is None else float(value)


def _share(part: MergedPartial) -> float | None:
    return None if part.sum is None else float(part.sum) / part.counted


def _gap(part: MergedPartial) -> float | None:
    if part.last_time is None:
        return None
    # Not by seconds since the epoch as a float, which has too few digits.
    end = datetime.datetime.fromtimestamp(part.start + part.width, datetime.UTC)
    return (end - part.last_time) / datetime.timedelta(seconds=1)


_SINGLE: dict[str, Callable[[MergedPartial], Decimal | float | None]] = {
    "count": lambda part: part.counted,
    "rate": lambda part: part.counted / part.width,
    "sum": lambda part: part.sum,
    "min": lambda part: part.low,
    "max": lambda part: part.high,
    "avg": _share,
    "last": lambda part: part.last_value,
    "distinct": lambda part: part.distinct,
    "error_share": _share,
    "gap": _gap,
}


def _percentiles(metric: Metric, parts: list[MergedPartial]) -> Iterator[tuple[Group, float]]:
    ordered = sorted((int(part.item), part) for part in parts if part.item is not None)
    if not ordered:
        return
    low = float(min(part.low for _, part in ordered if part.low is not None))
    high = float(max(part.high for _, part in ordered if part.high is not None))
    until = list(itertools.accumulate(part.counted for _, part in ordered))
    for percentile in metric.percentiles:
        # Not in floating point: there 99.9 percent of 1000 exceed 999.
        rank = math.ceil(Fraction(str(percentile)) * until[-1] / 100)
        bucket = next(bucket for (bucket, _), count in zip(ordered, until, strict=True) if rank <= count)
        # The middle of a bucket may lie beyond the smallest or largest value.
        yield [("percentile", _spell(percentile))], max(low, min(high, buckets.middle(bucket)))


def _histogram(metric: Metric, parts: list[MergedPartial]) -> Iterator[tuple[Group, float]]:
    for place, bound in enumerate([*(f"{bound:g}" for bound in metric.bounds), "+Inf"]):
        within = sum(part.counted for part in parts if part.item is not None and int(part.item) <= place)
        yield [("le", bound)], float(within)


def _top(metric: Metric, parts: list[MergedPartial]) -> Iterator[tuple[Group, float]]:
    order = sorted(
        (part for part in parts if part.item is not None), key=lambda part: (-part.counted, str(part.item))
    )
    for rank, part in enumerate(order[: metric.k], 1):
        yield [("rank", str(rank)), ("value", part.item)], float(part.counted)


def _spell(number: float) -> str:
    return str(float(number)).removesuffix(".0")


_SEVERAL: dict[str, Callable[[Metric, list[MergedPartial]], Iterator[tuple[Group, float | None]]]] = {
    "percentiles": _percentiles,
    "histogram": _histogram,
    "top": _top,
}
