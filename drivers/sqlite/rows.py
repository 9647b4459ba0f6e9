"""How records lie in the table: ids, headers, and many rows in one step.

``sqlite3`` gives up the interpreter lock around every step of a statement. Beside a
thread that is busy in Python each step then costs a switch interval, 5 ms, so that row by
row 200 a second go in or out. Here one step carries hundreds of rows: with an INSERT of
many rows, and with a SELECT that concatenates them into one.
"""

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, repeat

from notifier_kafka.driver import Delivery, Headers, Partition, make_delivery, make_record

OFFSET_BITS = 40
OFFSET_MASK = (1 << OFFSET_BITS) - 1

MICROSECONDS = 1_000_000

Row = tuple[int, int, bytes | None, bytes | None, bytes | None]
"""id, stamp, key, value, packed headers: a row of the table records."""

_COLUMNS = 5
# SQLite takes 32,766 variables in a statement. Powers of two, so that any number of rows
# needs few statements and few distinct ones stay prepared.
_MOST_ROWS = 4096
_LENGTH = struct.Struct("<I")

_FRAME_ROWS = 1_000
_FRAME_BYTES = 4 * 1024 * 1024

# The scan is in the order of ids, and so is each concatenation. Through TEXT, since
# group_concat works on text: bytes stay what they are in a UTF-8 database.
_SELECT = """
SELECT group_concat(id), group_concat(stamp),
    group_concat(ifnull(length(key), -1)), CAST(group_concat(CAST(key AS TEXT), '') AS BLOB),
    group_concat(ifnull(length(value), -1)), CAST(group_concat(CAST(value AS TEXT), '') AS BLOB),
    group_concat(ifnull(length(headers), -1)), CAST(group_concat(CAST(headers AS TEXT), '') AS BLOB)
FROM (
    SELECT id, stamp, key, value, headers FROM records
    WHERE id >= ? AND id < ? ORDER BY id LIMIT ?
)
"""


def first_id(partition_id: int, offset: int = 0) -> int:
    """Return the id of the record at an offset; beyond the bounds is at them."""
    return partition_id << OFFSET_BITS | max(0, min(offset, OFFSET_MASK))


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows, many in one statement."""
    done = 0
    while left := len(rows) - done:
        count = min(1 << left.bit_length() - 1, _MOST_ROWS)
        marks = ",".join(["(?,?,?,?,?)"] * count)
        values = list(chain.from_iterable(rows[done : done + count]))
        connection.execute(f"INSERT INTO records VALUES {marks}", values)  # noqa: S608  # nosec B608
        done += count


class Reader:
    """Reads rows in frames whose size follows that of the records."""

    def __init__(self) -> None:
        self._rows = 32

    def frame(self, connection: sqlite3.Connection, start: int, stop: int, limit: int) -> list[Row]:
        """Fetch some rows, from ``start`` on: at least one if there is one, at most ``limit``."""
        while True:
            count = min(limit, self._rows)
            try:
                found = connection.execute(_SELECT, (start, stop, count)).fetchone()
            except sqlite3.DataError:
                # Too big for one value of SQLite's; a single row never is.
                if count == 1:
                    raise
                self._rows = 1
                continue
            return self._split(found) if found[0] is not None else []

    def _split(self, found: Sequence[str | bytes]) -> list[Row]:
        ids, stamps, *columns = found
        size = sum(len(column or b"") for column in columns[1::2])
        rows = list(
            zip(
                _integers(ids),
                _integers(stamps),
                *(_cut(lengths, blob) for lengths, blob in zip(columns[::2], columns[1::2], strict=True)),
                strict=True,
            )
        )
        fitting = max(1, _FRAME_BYTES * len(rows) // max(size, 1))
        self._rows = min(fitting, self._rows * 4, _FRAME_ROWS)
        return rows


def deliveries(rows: Sequence[Row], partition: Partition) -> list[Delivery]:
    """Turn rows of one partition into what crosses the contract."""
    ids, stamps, keys, values, packed = zip(*rows, strict=True)
    headers = [unpack_headers(each) if each else () for each in packed]
    records = map(make_record, zip(repeat(partition.topic), values, keys, headers))
    offsets = [row_id & OFFSET_MASK for row_id in ids]
    times = [stamp / MICROSECONDS for stamp in stamps]
    found = map(make_delivery, zip(records, repeat(partition), offsets, times))
    return list(found)


# How packed headers begin. Nearly all are text with the same names again and again, and
# taking those apart by a split costs a fifth of what lengths cost.
_SPLIT, _LENGTHS = b"\0", b"\1"
_BETWEEN_NAMES = "\x1f"


def pack_headers(headers: Headers) -> bytes:
    """Put headers into one value: the names, then the contents, behind zero bytes; or lengths."""
    names, contents = zip(*headers, strict=True)
    packed = _join_names(names) + _SPLIT.join(contents)
    if packed.count(_SPLIT) == len(headers) + 1:
        return packed
    parts = [part for name, content in headers for part in (name.encode(), content)]
    return _LENGTHS + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


@lru_cache(1024)
def _join_names(names: tuple[str, ...]) -> bytes:
    """Spell the names as packed headers begin; with one zero byte too many if they cannot be split."""
    joined = _BETWEEN_NAMES.join(names)
    spoilt = joined.count(_BETWEEN_NAMES) != len(names) - 1
    return _SPLIT + joined.encode() + _SPLIT * (2 if spoilt else 1)


def unpack_headers(packed: bytes) -> Headers:
    """Undo ``pack_headers``."""
    if packed[:1] == _SPLIT:
        _, names, *contents = packed.split(_SPLIT)
        return tuple(zip(_split_names(names), contents, strict=True))
    parts = list(_by_length(packed))
    return tuple(zip(map(bytes.decode, parts[::2]), parts[1::2], strict=True))


@lru_cache(1024)
def _split_names(names: bytes) -> tuple[str, ...]:
    return tuple(names.decode().split(_BETWEEN_NAMES))


def _by_length(packed: bytes) -> Iterator[bytes]:
    at = 1
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        start = at + _LENGTH.size
        at = start + length
        yield packed[start:at]


def _integers(text: str | bytes) -> Iterator[int]:
    return map(int, text.split(","))  # type: ignore[arg-type]


def _cut(lengths: str | bytes, joined: bytes | str | None) -> Iterable[bytes | None]:
    """Take a concatenated column apart; a length below 0 stands for NULL."""
    sizes = list(_integers(lengths))
    if joined is None:
        return repeat(None, len(sizes))
    nulls = min(sizes) < 0
    stops = list(accumulate([max(size, 0) for size in sizes] if nulls else sizes))
    cuts: list[bytes | None] = [joined[a:b] for a, b in zip([0, *stops], stops)]  # type: ignore[misc]  # noqa: B905
    if nulls:
        cuts = [None if size < 0 else cut for size, cut in zip(sizes, cuts, strict=True)]
    return cuts
