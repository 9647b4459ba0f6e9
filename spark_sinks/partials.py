"""What batches left behind: their partials, starts and ends, and ids, in directories of parquet."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_sinks import aggregate, durations
from spark_sinks.ledger import Ledger
from spark_sinks.metrics import Duration, Metric

SCHEMAS = {"partials": aggregate.PARTIAL, "pairs": durations.EVENT, "seen": "id bigint"}
UNITS = ["metric", "start", "width"]


def write(frame: DataFrame, ledger: Ledger, kind: str, batch: int) -> None:
    """Keep what a batch made, in the place of what an interrupted attempt at it may have left."""
    names = (
        [field.split()[0].strip("`") for field in SCHEMAS[kind].split(", ")]
        if kind == "seen"
        else frame.columns
    )
    frame.select(*names).coalesce(1).write.mode("overwrite").parquet(str(ledger.data(kind, batch)))


def read(spark: SparkSession, ledger: Ledger, kind: str, batches: Sequence[int]) -> DataFrame:
    """Read what some batches made."""
    paths = [str(path) for batch in batches if (path := ledger.data(kind, batch)).exists()]
    if not paths:
        return spark.createDataFrame([], SCHEMAS[kind])
    return spark.read.schema(SCHEMAS[kind]).parquet(*paths)


def changed(spark: SparkSession, ledger: Ledger, metrics: Sequence[Metric], since: int) -> DataFrame:
    """Merge the partials of every metric and window that batches after ``since`` touched."""
    every = list(range(1, ledger.last() + 1))
    new = every[since:]
    mine = F.col("metric").isin(*(metric.name for metric in metrics))
    partials = read(spark, ledger, "partials", every).where(mine)
    if since:
        touched = read(spark, ledger, "partials", new).select(*UNITS).distinct()
        partials = partials.join(F.broadcast(touched), UNITS, "left_semi")
    merged = aggregate.merge(partials, metrics)
    if not any(isinstance(metric.value, Duration) for metric in metrics):
        return merged
    return merged.unionByName(_changed_durations(spark, ledger, metrics, every, since))


def _changed_durations(
    spark: SparkSession, ledger: Ledger, metrics: Sequence[Metric], every: list[int], since: int
) -> DataFrame:
    events = read(spark, ledger, "pairs", every)
    made = durations.partials(events, metrics)
    if not since:
        return made
    ends = durations.touched(events, read(spark, ledger, "pairs", every[since:]))
    touched = durations.units(ends, metrics)
    return made.join(F.broadcast(touched), UNITS, "left_semi")
