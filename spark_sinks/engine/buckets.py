"""Buckets that hold values: logarithmic for percentiles, of the user's bounds for histograms.

A logarithmic bucket holds what lies between two powers of GROWTH, and its middle is at
most ERROR away from each of them, relatively. Counts of buckets add up, so a percentile is
the same whether it was made of one batch or of a hundred.
"""

import math

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.language.metrics import Metric

ERROR = 0.01
GROWTH = (1 + ERROR) / (1 - ERROR)

# Values have nine decimal places: the smallest falls into bucket -1036, and this makes room below.
_SHIFT = 2000
_LN = math.log(GROWTH)


def of_value(value: Column) -> Column:
    """Return the bucket of a number: 0 for zero, and in the order of the values."""
    size = F.abs(value)
    index = F.ceil(F.log(size) / _LN).cast("int") + _SHIFT
    return F.when(value == 0, F.lit(0)).when(value > 0, index).when(value < 0, -index)


def middle(bucket: int) -> float:
    """Return the value that stands for a bucket."""
    size = GROWTH ** (abs(bucket) - _SHIFT) * (2 / (1 + GROWTH))
    return size if bucket > 0 else -size if bucket else 0.0


def of_bounds(value: Column, bounds: tuple[float, ...]) -> Column:
    """Return how many of the bounds a value exceeds."""
    found = F.when(value.isNull(), F.lit(None).cast("int"))
    for place, bound in enumerate(bounds):
        found = found.when(value <= bound, place)
    return found.otherwise(len(bounds))


def items(values: pa.ChunkedArray, metric: Metric) -> pa.ChunkedArray:
    """Return the buckets of numbers that are not negative, for kinds that have one, as text."""
    if metric.kind == "percentiles":
        index = pc.add(pc.ceil(pc.divide(pc.ln(values), _LN)), _SHIFT)
        found = pc.if_else(pc.equal(values, 0), 0.0, index)
    elif metric.kind == "histogram":
        found = pc.multiply(values, 0)
        for bound in metric.bounds:
            found = pc.add(found, pc.cast(pc.greater(values, bound), pa.float64()))
    else:
        return pa.nulls(len(values), pa.string())
    return pc.cast(pc.cast(found, pa.int64()), pa.string())
