"""What a metric is, as frozen values. Imports no pyspark."""

import re
from dataclasses import dataclass
from typing import Literal

from spark_sinks.language.field_paths import FieldPath

KINDS = {
    "count": "how many",
    "rate": "how many a second",
    "sum": "the sum of the values",
    "min": "the smallest value",
    "max": "the largest value",
    "avg": "the mean of the values",
    "last": "the latest value",
    "distinct": "how many different values, about",
    "percentiles": "values that so many percent do not exceed, about",
    "histogram": "how many values do not exceed each bound",
    "top": "the most frequent values with how often",
    "error_share": "the part that has priority ERROR or CRITICAL",
    "gap": "seconds from the last one to the end of the window",
}
"""Every kind, with the meaning of its values."""

NEEDS_VALUE = frozenset({"distinct", "percentiles", "histogram", "top"})
"""Kinds that make no sense with a constant."""

TAKES_NO_VALUE = frozenset({"error_share", "gap"})
"""Kinds that measure notifications, not values. With a path, ``count`` and ``rate`` count the
notifications that have it."""

COUNTED = frozenset({"count", "rate", "distinct", "top"})
"""Kinds that take the value of a path as text; the others take it as a number."""

SKETCH_SIZE = 12
"""A HyperLogLog sketch has 2 ** 12 registers: its standard error is 1.04 / sqrt(2 ** 12), 1.6 %."""

ERROR_PRIORITIES = ("ERROR", "CRITICAL")
DAY_SECONDS = 86_400
DEFAULT_WITHIN_SECONDS = DAY_SECONDS
DEFAULT_PERCENTILES = (50.0, 90.0, 99.0)
DEFAULT_BOUNDS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
DEFAULT_K = 10

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY_SECONDS}
_WIDTH = re.compile(r"([1-9]\d{0,6})\s?([smhd])")


@dataclass(frozen=True)
class Window:
    """Windows of ``width`` seconds; one begins every ``every`` seconds since the epoch."""

    width: int
    every: int

    @classmethod
    def tumbling(cls, width: int) -> "Window":
        return cls(width, width)


@dataclass(frozen=True)
class Condition:
    """A test of the value of a path."""

    path: FieldPath
    operator: Literal["equals", "not_equals", "one_of", "exists", "above", "below", "like"]
    operand: str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """Which notifications count: patterns with ``*`` and ``?``; one that begins with ``!`` excludes."""

    event_types: tuple[str, ...] = ()
    publishers: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Constant:
    number: int | float = 1


@dataclass(frozen=True)
class Latency:
    """Seconds from the event to its record on the log."""


@dataclass(frozen=True)
class Duration:
    """Seconds from a start event to the end event with the same key.

    Their event types differ only in the ending: ``create.start`` pairs with ``create.end``. The
    key is the first of ``keys`` that has a value. An end counts from the latest start before it
    that is at most ``within`` seconds old.
    """

    start: str = ".start"
    end: str = ".end"
    keys: tuple[FieldPath, ...] = ()
    within: int = DEFAULT_WITHIN_SECONDS


Value = Constant | FieldPath | Latency | Duration
Group = tuple[tuple[str, FieldPath], ...]
"""Names of the group's members, and the paths of their values."""


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    unit: str
    selection: Selection = Selection()
    value: Value = Constant()
    group_by: Group = ()
    windows: tuple[Window, ...] = (Window(60, 60),)
    percentiles: tuple[float, ...] = DEFAULT_PERCENTILES
    bounds: tuple[float, ...] = DEFAULT_BOUNDS
    k: int = DEFAULT_K


def parse_width(text: str) -> int:
    """Read ``30s``, ``1m``, ``1h`` or ``1d`` as seconds, or raise ``ValueError``."""
    found = _WIDTH.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a time span such as 30s, 1m, 1h or 1d")
    return int(found[1]) * _UNITS[found[2]]
