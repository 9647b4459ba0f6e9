"""Which notifications need their payload parsed, judged by their texts."""

import functools
import operator
from collections.abc import Sequence

from pyspark.sql import Column

from spark_sinks.decode.strict_json import never
from spark_sinks.engine import durations, expressions
from spark_sinks.language.field_paths import TREES, FieldPath
from spark_sinks.language.metrics import Duration, Metric


def payload(metrics: Sequence[Metric]) -> Column:
    """Return whether any metric needs the payload of a notification."""
    wanted = [_of(metric) for metric in metrics if _looks_inside(metric)]
    return functools.reduce(operator.or_, wanted, never())


def _of(metric: Metric) -> Column:
    if isinstance(metric.value, Duration):
        return durations.is_event(metric, metric.value)
    return expressions.selected_by_texts(metric.selection)


def _looks_inside(metric: Metric) -> bool:
    paths = [path for _, path in metric.group_by] + [c.path for c in metric.selection.conditions]
    if isinstance(metric.value, FieldPath):
        paths.append(metric.value)
    if isinstance(metric.value, Duration):
        paths += metric.value.keys
    return any(path.root in TREES for path in paths)
