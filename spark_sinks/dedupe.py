"""Each notification once: duplicates by message id, in a batch and among those before it.

Of every record its hash and its place, 16 bytes, are brought to the driver: to find what
stands twice among some millions of them takes less there than to sort them through Spark.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.driver import Span
from spark_sinks.decode import POSITION

DUPLICATE = "duplicate"
"""The ``reason`` of what was counted already."""


def place(spans: Sequence[Span]) -> Column:
    """Return one number for topic, partition and offset, in their order."""
    # Partitions are numbered through: bits for topic and partition each would be few of either.
    first: dict[str, int] = {}
    for number, (topic, partition) in enumerate(_partitions(spans)):
        first.setdefault(topic, number - partition)
    known = F.create_map(*(F.lit(each) for pair in first.items() for each in pair))
    return F.shiftleft((known[F.col("topic")] + F.col("partition")).cast("bigint"), _BITS) + F.col("offset")


def located(kept: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add topic, partition and offset, which ``prepare`` left out."""
    topics, numbers = zip(*_partitions(spans), strict=True)
    number = F.shiftright("place", _BITS).cast("int")
    added = {
        "topic": F.get(F.array(*map(F.lit, topics)), number),
        "partition": F.get(F.array(*map(F.lit, numbers)), number),
        "offset": F.col("place").bitwiseAND((1 << _BITS) - 1),
    }
    return kept.withColumns(added)


def _partitions(spans: Sequence[Span]) -> list[tuple[str, int]]:
    """List the partitions of topics up to the last that is read."""
    last: dict[str, int] = {}
    for (topic, number), _, _ in spans:
        last[topic] = max(number, last.get(topic, 0))
    return [(topic, number) for topic in sorted(last) for number in range(last[topic] + 1)]


_BITS = 40
"""Of an offset in a place."""


def prepare(prepared: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add a hash of the message id of each notification, and the place of each record for its position."""
    known = F.col("reason").isNull() & F.col("message_id").isNotNull()
    added = {"id": F.when(known, F.xxhash64("message_id")), "place": place(spans)}
    return prepared.withColumns(added).drop("message_id", *POSITION)


def ids(found: pa.Table) -> pa.Table:
    """Return each ``id`` with its first ``place`` and how many there are."""
    known = found.select(["id", "place"]).drop_null()
    return known.group_by("id").aggregate([("place", "min"), ("place", "count")])


def duplicates(found: pa.Table, once: pa.Table, seen: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return the places of what was counted before or stands twice; ``once`` are the ``ids``."""
    twice = once.filter(pc.greater(once["place_count"], 1)).select(["id", "place_min"])
    before: list[pa.ChunkedArray] = [each.filter(pc.is_in(each, once["id"])) for each in seen]
    old = pa.chunked_array([chunk for each in before for chunk in each.chunks], pa.int64())
    known = found.select(["id", "place"])
    again = known.filter(pc.is_in(known["id"], twice["id"])).join(twice, "id")
    later = again.filter(pc.greater(again["place"], again["place_min"]))["place"]
    gone = known.filter(pc.is_in(known["id"], old))["place"] if len(old) else None
    chunks = [*later.chunks, *(gone.chunks if gone is not None else ())]
    return pc.unique(pa.chunked_array(chunks, pa.int64()))


def mark(placed: DataFrame, gone: pa.Array) -> DataFrame:
    """Give what is a duplicate a reason not to be counted."""
    if not len(gone):
        return placed
    listed = placed.sparkSession.createDataFrame(pa.table({"gone": gone}))
    joined = placed.join(F.broadcast(listed), F.col("place") == F.col("gone"), "left")
    reason = F.when(F.col("gone").isNotNull(), DUPLICATE).otherwise(F.col("reason"))
    return joined.withColumn("reason", reason).drop("gone")
