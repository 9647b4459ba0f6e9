"""Buckets of values: logarithmic for percentiles (as in DDSketch), by the user's bounds for histograms.

A logarithmic bucket holds the values between two powers of GROWTH. The relative error of its
middle is at most MAX_RELATIVE_ERROR. Counts of buckets add up, so a percentile does not depend on
the number of batches. Imports no pyspark.
"""

import math

import pyarrow as pa
import pyarrow.compute as pc

from spark_sinks.language.metrics import Metric

MAX_RELATIVE_ERROR = 0.01
GROWTH = (1 + MAX_RELATIVE_ERROR) / (1 - MAX_RELATIVE_ERROR)

# Values have nine decimal places: the smallest falls into bucket -1036, and this makes room below.
INDEX_SHIFT = 2000
LOG_OF_GROWTH = math.log(GROWTH)


def middle(bucket: int) -> float:
    """Return the value that stands for a bucket."""
    size = GROWTH ** (abs(bucket) - INDEX_SHIFT) * (2 / (1 + GROWTH))
    return size if bucket > 0 else -size if bucket else 0.0


def items(values: pa.ChunkedArray, metric: Metric) -> pa.ChunkedArray:
    """Return the buckets of numbers from 0 on, as text; null for kinds without buckets."""
    if metric.kind == "percentiles":
        index = pc.add(pc.ceil(pc.divide(pc.ln(values), LOG_OF_GROWTH)), INDEX_SHIFT)
        found = pc.if_else(pc.equal(values, 0), 0.0, index)
    elif metric.kind == "histogram":
        found = pc.multiply(values, 0)
        for bound in metric.bounds:
            found = pc.add(found, pc.cast(pc.greater(values, bound), pa.float64()))
    else:
        return pa.nulls(len(values), pa.string())
    return pc.cast(pc.cast(found, pa.int64()), pa.string())
