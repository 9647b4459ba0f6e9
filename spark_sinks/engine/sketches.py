"""Unites and estimates HyperLogLog sketches of distinct values, with Spark's functions."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.engine import rollup


class Sketches:
    """The operations on partials that only Spark can do."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def unite(self, rows: pa.Table) -> pa.Table:
        """Unite the sketches of the same keys."""
        united = F.hll_union_agg("sketch").alias("sketch")
        found: pa.Table = self._spark.createDataFrame(rows).groupBy(*rollup.KEYS).agg(united).toArrow()
        return found

    def estimate(self, sketches: pa.ChunkedArray) -> list[float]:
        """Estimate the number of distinct values of each sketch."""
        # A united sketch estimates differently from one that was not united, with the same registers.
        # Uniting each with itself makes the estimate independent of the number of batches.
        listed = self._spark.createDataFrame(
            pa.table({"place": pa.array(range(len(sketches)), pa.int64()), "sketch": sketches})
        )
        found = listed.select("place", F.hll_sketch_estimate(F.hll_union("sketch", "sketch")).alias("found"))
        return [float(row.found) for row in sorted(found.collect())]
