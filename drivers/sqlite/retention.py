"""Deleting what is too old or too much, a bounded step at a time."""

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from notifier_kafka.contract.driver import Delivery, OnDeleted, Partition
from notifier_kafka.errors import MessagingException

from . import blocks, catalog
from .catalog import Head
from .logfile import LogFile

LOG = logging.getLogger(__name__)

STEP_RECORDS = 8_192
"""At most so many in one transaction. More than a batch, or publishers would outrun it."""

_INTERVAL = 5.0
# So many looks while as much is written as is kept.
_LOOKS = 16

# The partitions that hold something, with the time of their oldest record, oldest first.
_OLDEST = """
SELECT t.name, p.number, p.id, p.first, p.next, b.stamp
FROM partitions p JOIN topics t ON t.id = p.topic_id JOIN blocks b ON b.id = (
    SELECT id FROM blocks WHERE id BETWEEN p.id << 40 AND (p.id << 40) + p.first ORDER BY id DESC LIMIT 1
)
WHERE p.first < p.next ORDER BY b.stamp
"""


class Bounds(NamedTuple):
    """Seconds and bytes that are kept; 0 is without end."""

    seconds: float
    bytes: int


class Retention:
    """Runs now and then, beside publishing and beside the leases of listeners."""

    def __init__(
        self,
        log: LogFile,
        bounds: Callable[[], Bounds],
        told: Callable[[], OnDeleted | None] = lambda: None,
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._told = told
        self._due = 0.0
        self._written = 0

    def tidy(self, written: int | None = None, give_up: Callable[[], bool] | None = None) -> None:
        """Keep the WAL short, and delete what is due; an error is told and no more.

        ``written`` are the bytes since the last time, where they are known.
        """
        try:
            self._log.checkpoint(written, give_up)
            self.step(written or 0, give_up)
        except MessagingException as error:
            if give_up is None or not give_up():
                LOG.warning("Housekeeping is put off: %s", error)

    def step(self, written: int = 0, give_up: Callable[[], bool] | None = None) -> int:
        """Delete some records if, after ``written`` more bytes, it is time to; return how many."""
        bounds = self._bounds()
        self._written += written
        much = 0 < bounds.bytes < self._written * _LOOKS
        if not any(bounds) or (time.monotonic() < self._due and not much):
            return 0
        self._written = 0
        tell, deleted, gone = self._told(), 0, []
        with self._log.writing(give_up=give_up) as connection:
            for one, stop in _surplus(connection, bounds):
                if tell is not None:
                    gone += _records(connection, one, stop)
                catalog.trim(connection, one, stop)
                deleted += stop - one.first
        self._due = 0.0 if deleted else time.monotonic() + _INTERVAL
        if tell is not None and gone:
            _tell(tell, gone)
        return deleted


def _tell(tell: OnDeleted, gone: list[Delivery]) -> None:
    try:
        tell(gone)
    except Exception:
        # The user's code on our thread: whoever deletes by the way has other work, which is done already.
        LOG.exception("A callback for %d records that were deleted raised", len(gone))


def _oldest(connection: sqlite3.Connection) -> list[Head]:
    found = connection.execute(_OLDEST).fetchall()
    return [Head(Partition(topic, number), *rest) for topic, number, *rest in found]


def _surplus(connection: sqlite3.Connection, bounds: Bounds) -> Iterator[tuple[Head, int]]:
    """Yield partitions with the offset up to which they are to be trimmed, each once the one before is."""
    if bounds.seconds:
        yield from _too_old(connection, bounds.seconds)
    if bounds.bytes:
        yield from _too_much(connection, bounds.bytes)


def _too_old(connection: sqlite3.Connection, seconds: float) -> Iterator[tuple[Head, int]]:
    limit = time.time() - seconds
    left = STEP_RECORDS
    for one in _oldest(connection):
        if one.stamp >= limit * blocks.MICROSECONDS or left <= 0:
            break
        stop = min(catalog.offset_at(connection, one, limit), one.first + left)
        left -= stop - one.first
        yield one, stop


def _too_much(connection: sqlite3.Connection, most: int) -> Iterator[tuple[Head, int]]:
    used = _bytes_used(connection)
    partitions = _oldest(connection)
    held = sum(one.next - one.first for one in partitions)
    if used > most and held:
        oldest = partitions[0]
        surplus = math.ceil((used - most) * held / used)
        yield oldest, min(oldest.first + min(surplus, STEP_RECORDS), oldest.next)


def _records(connection: sqlite3.Connection, one: Head, stop: int) -> list[Delivery]:
    """Read the records of a partition up to an offset."""
    reader, found, at = blocks.Reader(), list[Delivery](), one.first
    while at < stop:
        start, end = (blocks.first_id(one.id, offset) for offset in (at, stop))
        frame = reader.frame(connection, start, end, stop - at)
        if frame is None:
            break
        found += blocks.deliveries(frame, one.partition)
        at = frame.stop
    return found


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
