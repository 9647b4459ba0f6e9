"""Turns the definitions of metrics into columns over decoded notifications, never into SQL text."""

import functools
import operator
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.decode.strict_json import never, variant_type
from spark_sinks.engine import buckets
from spark_sinks.language.field_paths import TREES, FieldPath
from spark_sinks.language.metrics import Condition, Selection

NUMBER = "decimal(29,9)"
"""Numbers have nine decimal places, so that sums do not depend on their order."""

SUM = "decimal(38,9)"


def text(path: FieldPath) -> Column:
    """Return the value of a path as text, null when there is none."""
    if path.root in TREES:
        return F.try_variant_get(F.col(path.root), path.below, "string")
    publisher = F.col("publisher_id")
    if path.root == "service":
        return F.substring_index(publisher, ".", 1)
    if path.root == "host":
        return F.when(publisher.contains("."), F.substr(publisher, F.instr(publisher, ".") + 1))
    return F.col(path.root)


def number(path: FieldPath) -> Column:
    """Return the number at a path, null for anything else, text included."""
    if path.root not in TREES:
        return F.lit(None).cast(NUMBER)
    found = F.try_variant_get(F.col(path.root), path.below, "variant")
    numeric = variant_type(found).isin("BIGINT", "DOUBLE") | variant_type(found).startswith("DECIMAL")
    return F.when(numeric, F.try_variant_get(found, "$", NUMBER))


def logarithmic_bucket(value: Column) -> Column:
    """Return the bucket of a number, as ``buckets`` numbers them: in the order of the values, 0 for zero."""
    index = F.ceil(F.log(F.abs(value)) / buckets.LOG_OF_GROWTH).cast("int") + buckets.INDEX_SHIFT
    return F.when(value == 0, F.lit(0)).when(value > 0, index).when(value < 0, -index)


def bounds_exceeded(value: Column, bounds: tuple[float, ...]) -> Column:
    """Return how many of the bounds a value exceeds."""
    found = F.when(value.isNull(), F.lit(None).cast("int"))
    for place, bound in enumerate(bounds):
        found = found.when(value <= bound, place)
    return found.otherwise(len(bounds))


def selected_by_texts(selection: Selection) -> Column:
    """Return whether a notification is selected by event type, publisher and priority."""
    found = _matches(F.col("event_type"), selection.event_types)
    found &= _matches(F.col("publisher_id"), selection.publishers)
    if selection.priorities:
        found &= F.col("priority").isin(*selection.priorities)
    return found


def selected(selection: Selection) -> Column:
    """Return whether a notification is selected."""
    return functools.reduce(operator.and_, map(_holds, selection.conditions), selected_by_texts(selection))


def _matches(column: Column, patterns: tuple[str, ...]) -> Column:
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    found = _any(column, wanted) if wanted else ~never()
    return found & ~_any(column, unwanted)


def _any(column: Column, patterns: list[str]) -> Column:
    likes = (F.coalesce(column.like(_like(pattern)), never()) for pattern in patterns)
    return functools.reduce(operator.or_, likes, never())


def _like(pattern: str) -> str:
    for special in "\\%_":
        pattern = pattern.replace(special, f"\\{special}")
    return pattern.replace("*", "%").replace("?", "_")


def _holds(condition: Condition) -> Column:
    return F.coalesce(_TESTS[condition.operator](condition), never())


def _equals(condition: Condition) -> Column:
    operand, path = condition.operand, condition.path
    if isinstance(operand, bool) and path.root in TREES:
        found = F.try_variant_get(F.col(path.root), path.below, "variant")
        return F.when(variant_type(found) == "BOOLEAN", F.try_variant_get(found, "$", "boolean") == operand)
    if isinstance(operand, int | float) and not isinstance(operand, bool):
        return number(path).cast("double") == float(operand)
    return text(path) == str(operand)


def _bound(condition: Condition) -> Column:
    assert isinstance(condition.operand, int | float)  # noqa: S101 - that is how the file is read
    # As a double, as it is compared: Spark refuses integers beyond 64 bits.
    return F.lit(float(condition.operand))


_TESTS: dict[str, Callable[[Condition], Column]] = {
    "equals": _equals,
    "not_equals": lambda c: ~F.coalesce(_equals(c), never()),
    "one_of": lambda c: text(c.path).isin(*_texts(c)),
    "exists": lambda c: text(c.path).isNotNull() == F.lit(c.operand),
    "above": lambda c: number(c.path).cast("double") > _bound(c),
    "below": lambda c: number(c.path).cast("double") < _bound(c),
    "like": lambda c: text(c.path).like(_like(str(c.operand))),
}


def _texts(condition: Condition) -> tuple[str, ...]:
    return condition.operand if isinstance(condition.operand, tuple) else (str(condition.operand),)
