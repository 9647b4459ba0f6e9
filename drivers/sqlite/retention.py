"""Deleting what is too old or too much, a bounded step at a time."""

import logging
import math
import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple

from notifier_kafka.driver import Partition
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

    def __init__(self, log: LogFile, bounds: Callable[[], Bounds]) -> None:
        self._log = log
        self._bounds = bounds
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
        with self._log.writing(give_up=give_up) as connection:
            deleted = _trim_old(connection, bounds.seconds) if bounds.seconds else 0
            if bounds.bytes:
                deleted += _trim_much(connection, bounds.bytes)
        self._due = 0.0 if deleted else time.monotonic() + _INTERVAL
        return deleted


def _oldest(connection: sqlite3.Connection) -> list[Head]:
    found = connection.execute(_OLDEST).fetchall()
    return [Head(Partition(topic, number), *rest) for topic, number, *rest in found]


def _trim_old(connection: sqlite3.Connection, seconds: float) -> int:
    limit = time.time() - seconds
    deleted = 0
    for one in _oldest(connection):
        if one.stamp >= limit * blocks.MICROSECONDS or deleted >= STEP_RECORDS:
            break
        stop = min(catalog.offset_at(connection, one, limit), one.first + STEP_RECORDS - deleted)
        catalog.trim(connection, one, stop)
        deleted += stop - one.first
    return deleted


def _trim_much(connection: sqlite3.Connection, most: int) -> int:
    used = _bytes_used(connection)
    partitions = _oldest(connection)
    held = sum(one.next - one.first for one in partitions)
    if used <= most or not held:
        return 0
    oldest = partitions[0]
    surplus = math.ceil((used - most) * held / used)
    stop = min(oldest.first + min(surplus, STEP_RECORDS), oldest.next)
    catalog.trim(connection, oldest, stop)
    return stop - oldest.first


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
