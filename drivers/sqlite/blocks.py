"""The format of records in the file: a row is a block of many records, their contents end to end.

A row for each record would cost more than all other work on it. Also, ``sqlite3``
releases the interpreter lock around every step of a statement; beside a thread that is busy in
Python each step then costs a switch interval, 5 ms. So one step carries many blocks: an
INSERT has many rows, and a SELECT concatenates many rows into one.
"""

import sqlite3
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple

from notifier_kafka.contract.driver import Delivery, Partition, make_delivery, make_record

from .packing import unpack_headers

OFFSET_BITS = 40
OFFSET_MASK = (1 << OFFSET_BITS) - 1

MICROSECONDS = 1_000_000

BLOCK_RECORDS = 256
"""The most records of a block: to read one record, the whole block is read."""

BLOCK_BYTES = 256 * 1024
"""A block of this size takes no more records. A single record may be larger."""

Part = bytes | None
"""A key, a value or packed headers: three parts make a record."""

Block = tuple[int, int, int, bytes, bytes]
"""id, count, stamp, lengths, body: a row of the table blocks."""

# SQLite allows 32,766 variables in a statement. Numbers of rows are powers of two, so that few
# distinct statements have to stay prepared.
_INSERT_ROWS = 4096

_FRAME_BLOCKS = 1_000
FRAME_BYTES = 4 * 1024 * 1024

# Begins with the block that has the first wanted record that is not deleted. The scan is in the
# order of ids, and so is each concatenation. The casts are there because group_concat works on
# text; in a UTF-8 database they do not change the bytes.
_SELECT = """
WITH wanted AS (SELECT max(:start, (id << 40) + first) AS start FROM partitions WHERE id = :start >> 40)
SELECT max(start), group_concat(id), group_concat(count), group_concat(stamp),
    CAST(group_concat(CAST(lengths AS TEXT), '') AS BLOB), CAST(group_concat(CAST(body AS TEXT), '') AS BLOB)
FROM (
    SELECT start, id, count, stamp, lengths, body FROM wanted JOIN blocks
    WHERE id < :stop AND id + count > start AND id >= ifnull(
        (SELECT id FROM blocks WHERE id BETWEEN start >> 40 << 40 AND start ORDER BY id DESC LIMIT 1), start
    )
    ORDER BY id LIMIT :blocks
)
"""


class Frame(NamedTuple):
    """Consecutive records of one partition. ``size`` counts the bytes of the blocks that were read."""

    start: int
    stamps: Sequence[int]
    parts: Sequence[Part]
    size: int

    @property
    def stop(self) -> int:
        """The offset after the last record."""
        return self.start + len(self.stamps)


def first_id(partition_id: int, offset: int = 0) -> int:
    """Return the id of a block that begins at an offset; an offset out of range is clipped."""
    return partition_id << OFFSET_BITS | max(0, min(offset, OFFSET_MASK))


def make_block(start: int, stamp: int, parts: Sequence[Part]) -> Block:
    """Make a block of records of three parts each; ``start`` is the id of the first."""
    lengths = [-1 if part is None else len(part) for part in parts]
    body = b"".join(filter(None, parts))
    return start, len(parts) // 3, stamp, _int_struct(len(lengths)).pack(*lengths), body


def insert(connection: sqlite3.Connection, blocks: Sequence[Block]) -> None:
    """Insert blocks, many with one statement."""
    done = 0
    while left := len(blocks) - done:
        count = min(1 << left.bit_length() - 1, _INSERT_ROWS)
        marks = ",".join(["(?,?,?,?,?)"] * count)
        values = list(chain.from_iterable(blocks[done : done + count]))
        connection.execute(f"INSERT INTO blocks VALUES {marks}", values)  # noqa: S608  # nosec B608
        done += count


class Reader:
    """Reads frames; the number of blocks in a frame adapts to their size."""

    def __init__(self) -> None:
        self._blocks = 32
        self._records = 1
        """About how many records a block of the last frame had."""

    def frame(self, connection: sqlite3.Connection, start: int, stop: int, limit: int) -> Frame | None:
        """Read records from ``start`` to before ``stop``, at most ``limit``; None when there are none."""
        while True:
            asked = min(self._blocks, limit // self._records + 1)
            wanted = {"start": start, "stop": stop, "blocks": asked}
            try:
                first, *found = connection.execute(_SELECT, wanted).fetchone()
            except sqlite3.DataError:
                # Together too large for one value of SQLite; a single block never is.
                if asked == 1:
                    raise
                self._blocks = 1
                continue
            return None if first is None else self._make_frame(found, first, stop, limit)

    def _make_frame(self, found: Sequence[Any], first: int, stop: int, limit: int) -> Frame:
        ids, counts, stamps = (list(map(int, column.split(","))) for column in found[:3])
        lengths, body = found[3:]
        held = sum(counts)
        fitting = max(1, FRAME_BYTES * len(ids) // max(len(body), 1))
        self._blocks, self._records = min(fitting, self._blocks * 4, _FRAME_BLOCKS), held // len(ids)
        # Within a partition there are no gaps, and so none between blocks.
        start = first - ids[0]
        end = min(held, start + limit, stop - ids[0])
        times = list(chain.from_iterable(map(repeat, stamps, counts)))
        return Frame(
            first & OFFSET_MASK, times[start:end], _split_body(lengths, body, start * 3, end * 3), len(body)
        )


def deliveries(frame: Frame, partition: Partition) -> list[Delivery]:
    """Make the deliveries of the driver contract from a frame."""
    keys, values, packed = (frame.parts[part::3] for part in range(3))
    headers = [unpack_headers(each) if each else () for each in packed]
    records = map(make_record, zip(repeat(partition.topic), values, keys, headers))
    times = [stamp / MICROSECONDS for stamp in frame.stamps]
    found = map(make_delivery, zip(records, repeat(partition), range(frame.start, frame.stop), times))
    return list(found)


@lru_cache(1024)
def _int_struct(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}i")


def _split_body(lengths: bytes, body: bytes, start: int, end: int) -> list[Part]:
    """Cut parts ``start`` to ``end`` out of a body; a length below 0 stands for NULL."""
    sizes = struct.unpack(f"<{len(lengths) // 4}i", lengths)
    nulls = min(sizes) < 0
    # max(size, 0) would cost as much as all the rest.
    stops = [0, *accumulate([size if size > 0 else 0 for size in sizes] if nulls else sizes)]
    cuts: list[Part] = [body[a:b] for a, b in pairwise(stops[start : end + 1])]
    if nulls:
        cuts = [None if size < 0 else cut for size, cut in zip(sizes[start:end], cuts, strict=True)]
    return cuts
