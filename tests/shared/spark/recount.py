"""Metric rows computed anew in plain Python, to compare with those that Spark makes.

Shared with what it checks are the definitions: metrics as their file is read
(``spark_sinks.language.metrics``) and paths (``spark_sinks.language.field_paths``). Records are decoded
by ``notifier_kafka.wire.codec``, as for listeners; the job does that on
the JVM. Selecting, grouping, windows and figures are this module's own.
"""

import datetime
import fnmatch
import math
from collections import defaultdict
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from notifier_kafka.contract.driver import Delivery
from notifier_kafka.errors import DecodeError
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Condition, Constant, Duration, Latency, Metric

EPOCH = datetime.datetime(1970, 1, 1)
Key = tuple[str, int, int, tuple[tuple[str, str | None], ...]]
Seen = tuple[Notification, Delivery, float]


def rows(
    deliveries: Iterable[Delivery], metrics: Iterable[Metric], behind: int = 30 * 86400, ahead: int = 3600
) -> dict[Key, float]:
    """Return the value of each metric, window (seconds) and group."""
    seen = list(_decoded(deliveries, behind, ahead))
    found: dict[Key, float] = {}
    for metric in metrics:
        samples: dict[Key, list[tuple[Any, Seen]]] = defaultdict(list)
        for value, one in _values(metric, seen):
            for start, width in _windows(metric, one[2]):
                group = tuple((name, _text(_at(one[0], path))) for name, path in metric.group_by)
                samples[metric.name, start, width, group].append((value, one))
        for key, listed in samples.items():
            for names, figure in _figures(metric, key, listed):
                found[(*key[:3], tuple(sorted(key[3] + names)))] = figure
    return found


def _decoded(deliveries: Iterable[Delivery], behind: int, ahead: int) -> Iterable[Seen]:
    ids = set()
    for delivery in deliveries:
        try:
            notification = codec.decode(delivery.record)
        except DecodeError:
            continue
        if notification.message_id in ids:
            continue
        ids.add(notification.message_id)
        time = delivery.timestamp
        if notification.timestamp:
            moment = datetime.datetime.fromisoformat(notification.timestamp)
            own = (moment - EPOCH) / datetime.timedelta(seconds=1)
            if delivery.timestamp - behind <= own <= delivery.timestamp + ahead:
                time = own
        yield notification, delivery, round(time, 6)


def _at(notification: Notification, path: FieldPath) -> Any:
    publisher = notification.publisher_id
    if path.root == "host":
        return publisher.partition(".")[2] if publisher and "." in publisher else None
    if path.root == "service":
        return publisher.partition(".")[0] if publisher else None
    value: Any = getattr(notification, path.root)
    for step in path.steps:
        try:
            value = value[step] if isinstance(value, dict) == isinstance(step, str) else None
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    exact = Decimal(repr(value))
    return exact.quantize(Decimal("1e-9"), ROUND_HALF_UP) if abs(exact) < 10**20 else None


def _selected(metric: Metric, notification: Notification) -> bool:
    chosen = metric.selection
    return (
        _globs(notification.event_type, chosen.event_types)
        and _globs(notification.publisher_id, chosen.publishers)
        and (not chosen.priorities or notification.priority in chosen.priorities)
        and all(_holds(condition, _at(notification, condition.path)) for condition in chosen.conditions)
    )


def _globs(text: str | None, patterns: tuple[str, ...]) -> bool:
    wanted = [p for p in patterns if not p.startswith("!")]
    hit = any(text is not None and fnmatch.fnmatchcase(text, p) for p in wanted) or not wanted
    return hit and not any(
        text is not None and fnmatch.fnmatchcase(text, p[1:]) for p in patterns if p[0] == "!"
    )


def _holds(condition: Condition, value: Any) -> bool:
    operand: Any = condition.operand
    number = _number(value)
    if condition.operator in ("equals", "not_equals"):
        if isinstance(operand, bool):
            same = value is operand
        elif isinstance(operand, int | float):
            same = number is not None and float(number) == operand
        else:
            same = _text(value) == operand
        return bool(same) == (condition.operator == "equals")
    if condition.operator == "above":
        return bool(number is not None and number > operand)
    if condition.operator == "below":
        return bool(number is not None and number < operand)
    if condition.operator == "one_of":
        return bool(_text(value) in operand)
    if condition.operator == "like":
        return value is not None and fnmatch.fnmatchcase(str(value), operand)
    return bool((value is not None) == operand)


def _values(metric: Metric, seen: list[Seen]) -> Iterable[tuple[Any, Seen]]:
    chosen = [one for one in seen if _selected(metric, one[0])]
    if isinstance(metric.value, Duration):
        yield from _durations(metric.value, chosen)
        return
    for one in chosen:
        value: Any
        if isinstance(metric.value, Constant):
            value = Decimal(str(metric.value.number))
        elif isinstance(metric.value, Latency):
            value = Decimal(repr(one[1].timestamp)) - Decimal(repr(one[2]))
        elif metric.kind in ("count", "rate", "distinct", "top"):
            value = _text(_at(one[0], metric.value))
        else:
            value = _number(_at(one[0], metric.value))
        if value is not None:
            yield value, one


def _durations(duration: Duration, seen: list[Seen]) -> Iterable[tuple[Any, Seen]]:
    starts: dict[Any, list[float]] = defaultdict(list)
    ends = []
    for one in seen:
        event_type = one[0].event_type or ""
        key = next((_text(at) for path in duration.keys if (at := _at(one[0], path)) is not None), None)
        if key is None:
            continue
        if event_type.endswith(duration.end):
            ends.append(((event_type.removesuffix(duration.end), key), one))
        elif event_type.endswith(duration.start):
            starts[event_type.removesuffix(duration.start), key].append(one[2])
    for operation, one in ends:
        before = [time for time in starts[operation] if time <= one[2]]
        if before and one[2] - max(before) <= duration.within:
            yield Decimal(repr(one[2])) - Decimal(repr(max(before))), one


def _windows(metric: Metric, time: float) -> Iterable[tuple[int, int]]:
    for window in metric.windows:
        first = math.floor(time) // window.every * window.every
        start = first
        while start > math.floor(time) - window.width:
            yield start, window.width
            start -= window.every


def _figures(metric: Metric, key: Key, listed: list[tuple[Any, Seen]]) -> Iterable[tuple[Any, float]]:
    values = [value for value, _ in listed]
    if metric.kind == "percentiles":
        ordered = sorted(values)
        for p in metric.percentiles:
            rank = int((Decimal(repr(p)) * len(ordered) / 100).to_integral_value(ROUND_CEILING))
            yield (("percentile", f"{p:g}"),), float(ordered[rank - 1])
    elif metric.kind == "histogram":
        for bound in (*metric.bounds, math.inf):
            name = "+Inf" if bound == math.inf else f"{bound:g}"
            yield (("le", name),), float(sum(value <= bound for value in values))
    elif metric.kind == "top":
        counts = {value: values.count(value) for value in set(values)}
        first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: metric.k]
        for rank, (value, count) in enumerate(first, 1):
            yield (("rank", str(rank)), ("value", value)), float(count)
    else:
        yield (), float(_single(metric, key, listed, values))


def _single(metric: Metric, key: Key, listed: list[tuple[Any, Seen]], values: list[Any]) -> float | Decimal:
    errors = sum(one[0].priority in ("ERROR", "CRITICAL") for _, one in listed)
    latest = max(listed, key=lambda pair: (pair[1][2], pair[1][1].partition, pair[1][1].offset))
    makers: dict[str, Any] = {
        "count": lambda: len(values),
        "rate": lambda: len(values) / key[2],
        "sum": lambda: sum(values),
        "min": lambda: min(values),
        "max": lambda: max(values),
        "avg": lambda: float(sum(values)) / len(values),
        "last": lambda: latest[0],
        "distinct": lambda: len(set(values)),
        "error_share": lambda: errors / len(values),
        "gap": lambda: key[1] + key[2] - latest[1][2],
    }
    made: float | Decimal = makers[metric.kind]()
    return made


def compare(ours: dict[Key, float], theirs: dict[Key, float], metrics: Iterable[Metric]) -> list[str]:
    """List the differences; what is an estimate may be off by what is stated."""
    bound = {
        metric.name: {"percentiles": 0.0101, "distinct": 0.06}.get(metric.kind, 1e-9) for metric in metrics
    }
    wrong = [f"only here {key}" for key in ours.keys() - theirs.keys()]
    wrong += [f"missing {key}" for key in theirs.keys() - ours.keys()]
    for key in ours.keys() & theirs.keys():
        if not math.isclose(ours[key], theirs[key], rel_tol=bound[key[0]], abs_tol=1e-6):
            wrong.append(f"{key}: {ours[key]} here, {theirs[key]} recounted")
    return sorted(wrong)


def key_of(
    metric: str, start: datetime.datetime, end: datetime.datetime, group: dict[str, str | None]
) -> Key:
    first, last = (int((at - EPOCH).total_seconds()) for at in (start, end))
    return metric, first, last - first, tuple(sorted(group.items()))
