"""Each notification once: duplicates by message id, in a batch and among those before it.

Of every record its hash, its place and when it was logged, 24 bytes, are brought to the
driver: to find what stands twice among some millions of them takes less there than to sort
them through Spark.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Span
from spark_sinks.decode.full import POSITION

DUPLICATE = "duplicate"
"""The ``reason`` of what was counted already."""


def place(spans: Sequence[Span]) -> Column:
    """Return one number for topic, partition and offset, in their order."""
    # Partitions are numbered through: bits for topic and partition each would be few of either.
    first: dict[str, int] = {}
    for number, (topic, partition) in enumerate(_partitions(spans)):
        first.setdefault(topic, number - partition)
    known = F.create_map(*(F.lit(each) for pair in first.items() for each in pair))
    return F.shiftleft((known[F.col("topic")] + F.col("partition")).cast("bigint"), _OFFSET_BITS) + F.col(
        "offset"
    )


def add_positions(kept: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add topic, partition and offset, which ``prepare`` left out."""
    topics, numbers = zip(*_partitions(spans), strict=True)
    number = F.shiftright("place", _OFFSET_BITS).cast("int")
    added = {
        "topic": F.get(F.array(*map(F.lit, topics)), number),
        "partition": F.get(F.array(*map(F.lit, numbers)), number),
        "offset": F.col("place").bitwiseAND((1 << _OFFSET_BITS) - 1),
    }
    return kept.withColumns(added)


def _partitions(spans: Sequence[Span]) -> list[tuple[str, int]]:
    """List the partitions of topics up to the last that is read."""
    last: dict[str, int] = {}
    for (topic, number), _, _ in spans:
        last[topic] = max(number, last.get(topic, 0))
    return [(topic, number) for topic in sorted(last) for number in range(last[topic] + 1)]


_OFFSET_BITS = 40
"""Of an offset in a place."""
_EARLIER_BATCH = -1
"""The place of what an earlier batch has seen."""
SEEN = pa.schema({"id": pa.int64(), "logged": pa.int64()})
"""What is kept of each notification: a hash of its id, and microseconds."""


def prepare(prepared: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add a hash of the message id of each notification, and the place of each record for its position."""
    known = F.col("reason").isNull() & F.col("message_id").isNotNull()
    added = {"id": F.when(known, F.xxhash64("message_id")), "place": place(spans)}
    return prepared.withColumns(added).drop("message_id", *POSITION)


def ids(found: pa.Table) -> pa.Table:
    """Return the ``id`` of each notification, when it was ``logged``, and its ``place``."""
    known = found.select(["id", "logged", "place"]).drop_null()
    return known.set_column(1, "logged", known["logged"].cast(pa.int64()))


def duplicates(known: pa.Table, seen: Iterable[pa.Table], horizon: float) -> pa.Array:
    """Return the places of what was counted before or stands there again; ``known`` are the ``ids``.

    Copies belong together while each was logged within ``horizon`` seconds of the one before.
    Of those the earliest counts, or the one that an earlier batch has counted.
    """
    hashes = pc.unique(known["id"])
    old = pa.concat_tables([SEEN.empty_table(), *_sieved(seen, hashes)])
    if len(old):
        old = old.filter(pc.is_in(old["id"], hashes))
    if len(hashes) == len(known) and not len(old):
        return pa.array([], pa.int64())
    counted = known.group_by("id").aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))["id"]
    suspect = pc.or_(pc.is_in(known["id"], twice), pc.is_in(known["id"], old["id"]))
    old = old.append_column("place", pa.repeat(pa.scalar(_EARLIER_BATCH, pa.int64()), len(old)))
    order = [(name, "ascending") for name in ("id", "logged", "place")]
    copies = pa.concat_tables([known.filter(suspect), old]).sort_by(order)
    own, logged, places = (copies[name].combine_chunks() for name in ("id", "logged", "place"))
    apart = pc.or_(
        pc.not_equal(own[1:], own[:-1]),
        pc.greater(pc.subtract(logged[1:], logged[:-1]), round(horizon * 1_000_000)),
    )
    first = pa.concat_arrays([pa.array([True]), apart])
    number = pc.cumulative_sum(first.cast(pa.int64()))
    is_old = pc.equal(places, _EARLIER_BATCH)
    kept = pc.and_not(first, pc.is_in(number, number.filter(is_old)))
    return places.filter(pc.invert(pc.or_(is_old, kept)))


def _sieved(seen: Iterable[pa.Table], hashes: pa.Array) -> Iterator[pa.Table]:
    """Return what earlier batches have of hashes, and a little more."""
    sieve = None
    for each in seen:
        # Not made where nothing was seen before: that takes as long as all else.
        sieve = _sieve(hashes) if sieve is None else sieve
        yield each.filter(_passes(each["id"], sieve))


def _sieve(ids: pa.Array) -> pa.Array:
    """Mark the low bits of each id, in a table of eight to sixteen times as many.

    Batches before may have ten times as many ids, and to look each up costs 70 times a look at this.
    """
    size = 1 << (8 * max(len(ids), 1)).bit_length()
    marks = bytearray(size)
    for low in pc.bit_wise_and(ids, size - 1).to_pylist():
        marks[low] = True
    return pa.Array.from_buffers(pa.uint8(), size, [None, pa.py_buffer(marks)])


def _passes(ids: pa.ChunkedArray, sieve: pa.Array) -> pa.ChunkedArray:
    """Tell of each id whether one with the same low bits is marked."""
    return pc.cast(pc.take(sieve, pc.bit_wise_and(ids, len(sieve) - 1)), pa.bool_())


def mark_duplicates(placed: DataFrame, gone: pa.Array) -> DataFrame:
    """Give what is a duplicate a reason not to be counted."""
    if not len(gone):
        return placed
    listed = placed.sparkSession.createDataFrame(pa.table({"gone": gone}))
    joined = placed.join(F.broadcast(listed), F.col("place") == F.col("gone"), "left")
    reason = F.when(F.col("gone").isNotNull(), DUPLICATE).otherwise(F.col("reason"))
    return joined.withColumn("reason", reason).drop("gone")
