"""Reads the file that declares metrics. Every error names the file, the line and what to do."""

import dataclasses
from collections.abc import Callable
from importlib import resources
from typing import Literal, get_args

from notifier_kafka.notification import PRIORITIES
from spark_sinks import language
from spark_sinks.language import ceilometer, field_paths, yaml_lines
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import (
    DEFAULT_BOUNDS,
    DEFAULT_K,
    DEFAULT_PERCENTILES,
    DEFAULT_WITHIN_SECONDS,
    KINDS,
    NEEDS_VALUE,
    TAKES_NO_VALUE,
    Condition,
    Constant,
    Duration,
    Group,
    Latency,
    Metric,
    Selection,
    Value,
    Window,
    parse_width,
)
from spark_sinks.language.yaml_lines import YamlValue

LATENCY = "latency"
# Names that some kinds add to the group of their rows.
RESERVED_GROUP_NAMES = frozenset({"percentile", "le", "rank", "value"})

_KEYS = (
    *("name", "kind", "unit", "event_type", "publisher", "priority", "where", "value"),
    *("group_by", "window", "rollups", "percentiles", "buckets", "k"),
)
_OPERATORS = ("equals", "not_equals", "one_of", "exists", "above", "below", "like")
MAX_CONSTANT = 10**18
"""A constant is below it, so that its sum does not overflow."""
_DURATION_KEYS = ("start", "end", "key", "within")

Operator = Literal["equals", "not_equals", "one_of", "exists", "above", "below", "like"]


def read(file: str, window: int = 60) -> tuple[Metric, ...]:
    """Read the metrics of a file: ours (``metrics:``) or Ceilometer's (``metric:``).

    ``window`` is the width in seconds for those that do not say.
    """
    whole = yaml_lines.read(file)
    members = whole.mapping("the file", ("metrics", "metric"))
    if len(members) != 1:
        whole.refuse("the file needs either 'metrics' or Ceilometer's 'metric', once")
    ((kind, listed),) = members.items()
    make = _metric if kind == "metrics" else ceilometer.meter
    found = tuple(make(item, window) for item in listed.items(kind))
    _refuse_duplicates(found, listed.items(kind))
    return found


def default(window: int = 60) -> tuple[Metric, ...]:
    """Read the metrics that need no file of the user's, with another width in seconds of their windows."""
    with resources.as_file(resources.files(language) / "default_metrics.yaml") as file:
        found = read(str(file))
    return tuple(dataclasses.replace(metric, windows=_from(window, metric.windows)) for metric in found)


def _from(width: int, windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Put a window in the place of the first, and leave out roll-ups that are not wider."""
    return (Window.tumbling(width), *(wider for wider in windows[1:] if wider.width > width))


def _refuse_duplicates(found: tuple[Metric, ...], items: list[YamlValue]) -> None:
    lines: dict[str, int] = {}
    for metric, item in zip(found, items, strict=True):
        if metric.name in lines:
            item.refuse(f"the name {metric.name!r} is taken by the metric on line {lines[metric.name]}")
        lines[metric.name] = item.line


def _metric(item: YamlValue, window: int) -> Metric:
    members = item.mapping("a metric", _KEYS)
    if "name" not in members:
        item.refuse("a metric needs a name")
    name = members["name"].name()
    kind = _kind(item, members)
    _refuse_foreign(members, kind)
    value = _value(members.get("value"), members)
    _refuse_misfit(item, kind, value)
    return Metric(
        name,
        kind,
        members["unit"].text("unit") if "unit" in members else "",
        _selection(members),
        value,
        _group(members.get("group_by")),
        _windows(members, window),
        _percentiles(members.get("percentiles")),
        _ascending(members["buckets"], "buckets") if "buckets" in members else DEFAULT_BOUNDS,
        _k(members.get("k")),
    )


def _refuse_misfit(item: YamlValue, kind: str, value: Value) -> None:
    if isinstance(value, Constant) and kind in NEEDS_VALUE:
        item.refuse(f"{kind} needs a value, such as $.payload.size")
    if not isinstance(value, Constant) and kind in TAKES_NO_VALUE:
        item.refuse(f"{kind} takes no value; remove it")
    if isinstance(value, Duration) and kind in ("distinct", "top"):
        item.refuse(f"{kind} cannot count durations")


def _kind(item: YamlValue, members: dict[str, YamlValue]) -> str:
    if "kind" not in members:
        item.refuse(f"a metric needs a kind; known are {', '.join(KINDS)}")
    kind = members["kind"].text("kind")
    if kind not in KINDS:
        members["kind"].refuse(f"unknown kind {kind!r}; {yaml_lines.suggest(kind, KINDS)}")
    return kind


def _selection(members: dict[str, YamlValue]) -> Selection:
    def patterns(key: str) -> tuple[str, ...]:
        return members[key].texts(key) if key in members else ()

    priorities = tuple(name.lower() for name in patterns("priority"))
    for name in priorities:
        if name not in PRIORITIES:
            members["priority"].refuse(f"unknown priority {name!r}; {yaml_lines.suggest(name, PRIORITIES)}")
    where = members["where"].items("where") if "where" in members else []
    return Selection(
        patterns("event_type"),
        patterns("publisher"),
        tuple(name.upper() for name in priorities),
        tuple(map(_condition, where)),
    )


def _condition(item: YamlValue) -> Condition:
    members = item.mapping("a condition", ("path", *_OPERATORS))
    tests = [name for name in _OPERATORS if name in members]
    if "path" not in members or len(tests) != 1:
        item.refuse(f"a condition needs a path and one of {', '.join(_OPERATORS)}")
    operator: Operator = next(each for each in get_args(Operator) if each == tests[0])
    operand = members[operator]
    return Condition(path(members["path"]), operator, _OPERANDS[operator](operand, operator))


def _scalar(item: YamlValue, what: str) -> str | int | float | bool:
    if isinstance(item.value, bool):
        return item.value
    return item.text(what) if isinstance(item.value, str) else item.number(what)


def _truth(item: YamlValue, what: str) -> bool:
    if not isinstance(item.value, bool):
        item.refuse(f"{what} is neither true nor false")
    return bool(item.value)


_OPERANDS: dict[str, Callable[[YamlValue, str], str | int | float | bool | tuple[str, ...]]] = {
    "equals": _scalar,
    "not_equals": _scalar,
    "one_of": YamlValue.texts,
    "exists": _truth,
    "above": YamlValue.number,
    "below": YamlValue.number,
    "like": YamlValue.text,
}


def path(item: YamlValue) -> FieldPath:
    """Read a path of the file."""
    text = item.text("a path")
    try:
        return field_paths.parse(text)
    except ValueError as error:
        item.refuse(str(error))


def _value(item: YamlValue | None, members: dict[str, YamlValue]) -> Value:
    if item is None:
        return Constant()
    if isinstance(item.value, dict):
        return _duration(item, members)
    if isinstance(item.value, str):
        return Latency() if item.value == LATENCY else path(item)
    number = item.number("value")
    if abs(number) >= MAX_CONSTANT:
        item.refuse(f"value must be below {MAX_CONSTANT:.0e}: larger sums would not be exact")
    return Constant(number)


def _duration(item: YamlValue, outer: dict[str, YamlValue]) -> Duration:
    members = item.mapping("value", _DURATION_KEYS)
    for name in ("start", "end", "key"):
        if name not in members:
            item.refuse(f"a duration needs start, end and key; {name} is missing")
    if "event_type" in outer:
        outer["event_type"].refuse("start and end of a duration select the event types; remove event_type")
    suffixes = [_suffix(members[name], name) for name in ("start", "end")]
    if suffixes[0] == suffixes[1]:
        members["end"].refuse("start and end are the same")
    keys = tuple(path(key) for key in members["key"].items("key"))
    within = width(members["within"]) if "within" in members else DEFAULT_WITHIN_SECONDS
    return Duration(suffixes[0], suffixes[1], keys, within)


def _suffix(item: YamlValue, what: str) -> str:
    text = item.text(what)
    ending = text.removeprefix("*")
    if not text.startswith("*") or not ending or set(ending) & set("*?!"):
        item.refuse(f"{what} {text!r} is not an ending of event types, such as *.start")
    return ending


def _group(item: YamlValue | None) -> Group:
    if item is None:
        return ()
    found: list[tuple[str, FieldPath]] = []
    for each in item.items("group_by"):
        if isinstance(each.value, dict):
            found += [(name, path(value)) for name, value in each.mapping("group_by").items()]
        else:
            where = path(each)
            found.append((str(where.steps[-1]) if where.steps else where.root, where))
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1 or name in RESERVED_GROUP_NAMES or not name:
            item.refuse(f"group_by: the name {name!r} is taken; choose another: [{{other: $.payload...}}]")
    return tuple(found)


def width(item: YamlValue) -> int:
    """Read a span of time of the file."""
    try:
        return parse_width(item.text("a span of time"))
    except ValueError as error:
        item.refuse(str(error))


def _windows(members: dict[str, YamlValue], default: int) -> tuple[Window, ...]:
    own = Window.tumbling(default)
    if "window" in members:
        own = _window(members["window"])
    rollups = members["rollups"].items("rollups") if "rollups" in members else []
    found = [own]
    for item in rollups:
        wider = Window.tumbling(width(item))
        if wider.width <= own.width or wider in found:
            item.refuse("a roll-up must be wider than the window and occur once")
        found.append(wider)
    return tuple(found)


def _window(item: YamlValue) -> Window:
    if not isinstance(item.value, dict):
        return Window.tumbling(width(item))
    members = item.mapping("window", ("width", "every"))
    if len(members) != 2:
        item.refuse("a sliding window needs width and every, as in {width: 5m, every: 1m}")
    made = Window(width(members["width"]), width(members["every"]))
    if made.width % made.every:
        item.refuse("the width of a sliding window must be a multiple of every")
    if made.width // made.every > 100:
        item.refuse("a sliding window may begin at most 100 times within its width")
    return made


def _refuse_foreign(members: dict[str, YamlValue], kind: str) -> None:
    for key, owner in (("percentiles", "percentiles"), ("buckets", "histogram"), ("k", "top")):
        if key in members and kind != owner:
            members[key].refuse(f"{key} belongs to the kind {owner}, and this metric's kind is {kind}")


def _percentiles(item: YamlValue | None) -> tuple[float, ...]:
    if item is None:
        return DEFAULT_PERCENTILES
    found = _ascending(item, "percentiles")
    if not all(0 < number <= 100 for number in found):
        item.refuse("a percentile must be above 0 and at most 100")
    return found


def _k(item: YamlValue | None) -> int:
    if item is None:
        return DEFAULT_K
    k = item.number("k")
    if not isinstance(k, int) or not 1 <= k <= 1000:
        item.refuse("k must be a whole number from 1 to 1000")
    return int(k)


def _ascending(item: YamlValue, what: str) -> tuple[float, ...]:
    numbers = tuple(float(each.number(what)) for each in item.items(what))
    if list(numbers) != sorted(set(numbers)):
        item.refuse(f"{what} must be in ascending order")
    return numbers
