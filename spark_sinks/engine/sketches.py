"""Sketches of different values, united and estimated: Spark's own functions, over a few rows."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks.engine import rollup


class Sketches:
    """What only Spark can do with partials."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def unite(self, rows: pa.Table) -> pa.Table:
        """Unite the sketches of the same keys."""
        united = F.hll_union_agg("sketch").alias("sketch")
        found: pa.Table = self._spark.createDataFrame(rows).groupBy(*rollup.KEYS).agg(united).toArrow()
        return found

    def estimate(self, sketches: pa.ChunkedArray) -> list[float]:
        """Estimate how many different values each has seen."""
        # A sketch that was filled and one that was united estimate differently from the same
        # registers. United with itself it has been united, however many batches there were.
        listed = self._spark.createDataFrame(
            pa.table({"place": pa.array(range(len(sketches)), pa.int64()), "sketch": sketches})
        )
        found = listed.select("place", F.hll_sketch_estimate(F.hll_union("sketch", "sketch")).alias("found"))
        return [float(row.found) for row in sorted(found.collect())]
