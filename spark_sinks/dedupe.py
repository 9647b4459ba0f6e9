"""Each notification once: duplicates by message id, in a batch and among those before it."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.driver import Span

DUPLICATE = "duplicate"
"""The ``reason`` of what was counted already."""


def place(prepared: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add a hash of the message id, and one number for topic, partition and offset."""
    topics = sorted({span.partition.topic for span in spans})
    known = F.create_map(*(F.lit(each) for i, topic in enumerate(topics) for each in (topic, i << 20)))
    base = (known[F.col("topic")] + F.col("partition")).cast("bigint")
    hashed = F.when(F.col("message_id").isNotNull(), F.xxhash64("message_id"))
    columns = {"id": hashed, "place": F.shiftleft(base, 40) + F.col("offset")}
    return prepared.withColumns(columns).drop("message_id")


def ids(placed: DataFrame) -> DataFrame:
    """Return each id with the first place where it is, and how often."""
    sound = placed.where(F.col("reason").isNull() & F.col("id").isNotNull())
    return sound.groupBy("id").agg(F.min("place").alias("first"), F.count("*").alias("times"))


def mark(placed: DataFrame, found: DataFrame, seen: DataFrame | None) -> DataFrame:
    """Give what was counted before, or stands twice, a reason not to be counted."""
    before = F.lit(False)  # noqa: FBT003 - its only argument
    if seen is not None:
        found = found.join(seen.select("id").distinct().withColumn("seen", F.lit(True)), "id", "left")  # noqa: FBT003
        before = F.coalesce("seen", before)
    twice = found.withColumn("before", before).where("before OR times > 1").select("id", "first", "before")
    again = F.col("reason").isNull() & (F.col("before") | (F.col("place") > F.col("first")))
    joined = placed.join(F.broadcast(twice), "id", "left")
    reason = F.when(again, DUPLICATE).otherwise(F.col("reason"))
    return joined.withColumn("reason", reason).drop("first", "before")
