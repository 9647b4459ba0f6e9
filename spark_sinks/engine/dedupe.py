"""Deduplicates notifications by message id, within a batch and against earlier batches.

The hash of the id, the place and the time of every record, 24 bytes, go to the driver: for some
millions of records, finding duplicates there is faster than sorting them in Spark.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Span
from spark_sinks.decode.full import POSITION

DUPLICATE = "duplicate"
"""The ``reason`` of a record that was counted before."""


def place(spans: Sequence[Span]) -> Column:
    """Return one number for topic, partition and offset, in their order."""
    # One number for topic and partition: separate bit fields would be too narrow.
    first: dict[str, int] = {}
    for number, (topic, partition) in enumerate(_partitions(spans)):
        first.setdefault(topic, number - partition)
    known = F.create_map(*(F.lit(each) for pair in first.items() for each in pair))
    return F.shiftleft((known[F.col("topic")] + F.col("partition")).cast("bigint"), _OFFSET_BITS) + F.col(
        "offset"
    )


def add_positions(kept: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Add topic, partition and offset, which ``prepare`` replaced by the place."""
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
"""The bits of the offset in a place."""
_EARLIER_BATCH = -1
"""The place of a record of an earlier batch."""
SEEN = pa.schema({"id": pa.int64(), "logged": pa.int64()})
"""What is stored of each notification: the hash of its id, and its record's time in microseconds."""


def prepare(prepared: DataFrame, spans: Sequence[Span]) -> DataFrame:
    """Replace the message id by its hash, and topic, partition and offset by the place."""
    known = F.col("reason").isNull() & F.col("message_id").isNotNull()
    added = {"id": F.when(known, F.xxhash64("message_id")), "place": place(spans)}
    return prepared.withColumns(added).drop("message_id", *POSITION)


def ids(found: pa.Table) -> pa.Table:
    """Return the ``id``, ``logged`` and ``place`` of each notification that has an id."""
    known = found.select(["id", "logged", "place"]).drop_null()
    return known.set_column(1, "logged", known["logged"].cast(pa.int64()))


def duplicates(known: pa.Table, seen: Iterable[pa.Table], horizon: float) -> pa.Array:
    """Return the places of duplicates; ``known`` is what ``ids`` returned.

    Copies belong together while each was recorded within ``horizon`` seconds of the previous one.
    The earliest of them counts, or the one that an earlier batch has counted.
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
    """Return the rows of earlier batches that may have one of the hashes."""
    sieve = None
    for each in seen:
        # Made only when it is needed: it takes as long as everything else.
        sieve = _sieve(hashes) if sieve is None else sieve
        yield each.filter(_passes(each["id"], sieve))


def _sieve(ids: pa.Array) -> pa.Array:
    """Mark the low bits of each id in a table that is eight to sixteen times as large.

    Earlier batches may have ten times as many ids, and an exact lookup costs 70 times as much.
    """
    size = 1 << (8 * max(len(ids), 1)).bit_length()
    marks = bytearray(size)
    for low in pc.bit_wise_and(ids, size - 1).to_pylist():
        marks[low] = True
    return pa.Array.from_buffers(pa.uint8(), size, [None, pa.py_buffer(marks)])


def _passes(ids: pa.ChunkedArray, sieve: pa.Array) -> pa.ChunkedArray:
    """Return for each id whether its low bits are marked."""
    return pc.cast(pc.take(sieve, pc.bit_wise_and(ids, len(sieve) - 1)), pa.bool_())


def mark_duplicates(placed: DataFrame, gone: pa.Array) -> DataFrame:
    """Set the ``reason`` of the records at the places of duplicates."""
    if not len(gone):
        return placed
    listed = placed.sparkSession.createDataFrame(pa.table({"gone": gone}))
    joined = placed.join(F.broadcast(listed), F.col("place") == F.col("gone"), "left")
    reason = F.when(F.col("gone").isNotNull(), DUPLICATE).otherwise(F.col("reason"))
    return joined.withColumn("reason", reason).drop("gone")
