"""Buckets that hold values: logarithmic for percentiles, of the user's bounds for histograms.

A logarithmic bucket holds what lies between two powers of GROWTH, and its middle is at
most ERROR away from each of them, relatively. Counts of buckets add up, so a percentile is
the same whether it was made of one batch or of a hundred.
"""

import math

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

ERROR = 0.01
GROWTH = (1 + ERROR) / (1 - ERROR)

# Values have nine decimal places: the smallest falls into bucket -1036, and this makes room below.
_SHIFT = 2000
_LN = math.log(GROWTH)


def of_value(value: Column) -> Column:
    """Return the bucket of a number: 0 for zero, and in the order of the values."""
    size = F.abs(value.cast("double"))
    index = F.ceil(F.log(size) / _LN).cast("int") + _SHIFT
    return F.when(value == 0, F.lit(0)).when(value > 0, index).when(value < 0, -index)


def middle(bucket: Column) -> Column:
    """Return the value that stands for a bucket."""
    power = F.abs(bucket) - _SHIFT
    size = F.pow(F.lit(GROWTH), power) * (2 / (1 + GROWTH))
    return F.when(bucket == 0, 0.0).when(bucket > 0, size).otherwise(-size)


def of_bounds(value: Column, bounds: tuple[float, ...]) -> Column:
    """Return how many of the bounds a value exceeds."""
    found = F.when(value.isNull(), F.lit(None).cast("int"))
    for place, bound in enumerate(bounds):
        found = found.when(value.cast("double") <= bound, place)
    return found.otherwise(len(bounds))
