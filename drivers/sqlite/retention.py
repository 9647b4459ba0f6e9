"""Retention: deletes records that are too old or too many, in small steps."""

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from notifier_kafka.contract import callbacks
from notifier_kafka.contract.driver import Delivery, OnDeleted, Partition
from notifier_kafka.errors import MessagingException

from . import blocks, catalog
from .catalog import PartitionState
from .logfile import LogFile

LOG = logging.getLogger(__name__)

STEP_RECORDS = 8_192
"""The most records that one step deletes. More than a batch, or publishers would be faster."""

_INTERVAL_SECONDS = 5.0
# How often it checks while retention_bytes are written.
_CHECKS_PER_FILL = 16

# The partitions that hold something, with the time of their oldest record, oldest first.
_OLDEST = """
SELECT t.name, p.number, p.id, p.first, p.next, b.stamp
FROM partitions p JOIN topics t ON t.id = p.topic_id JOIN blocks b ON b.id = (
    SELECT id FROM blocks WHERE id BETWEEN p.id << 40 AND (p.id << 40) + p.first ORDER BY id DESC LIMIT 1
)
WHERE p.first < p.next ORDER BY b.stamp
"""


class RetentionLimits(NamedTuple):
    """How many seconds and bytes are kept; 0 for no limit."""

    seconds: float
    bytes: int


class Retention:
    """Deletes records by age and size; publishers and listeners run it now and then."""

    def __init__(
        self,
        log: LogFile,
        limits: Callable[[], RetentionLimits],
        get_callback: Callable[[], OnDeleted | None] = lambda: None,
    ) -> None:
        self._log = log
        self._limits = limits
        self._get_callback = get_callback
        self._due = 0.0
        self._written = 0

    def clean_up(self, written: int | None = None, give_up: Callable[[], bool] | None = None) -> None:
        """Checkpoint the WAL and delete records where necessary. Errors are logged, not raised.

        ``written`` counts the bytes since the last call, where it is known.
        """
        try:
            self._log.checkpoint(written, give_up)
            self.step(written or 0, give_up)
        except MessagingException as error:
            if give_up is None or not give_up():
                LOG.warning("Clean-up is put off: %s", error)

    def step(self, written: int = 0, give_up: Callable[[], bool] | None = None) -> int:
        """Delete some records if it is time, after ``written`` more bytes; return how many."""
        limits = self._limits()
        self._written += written
        much = 0 < limits.bytes < self._written * _CHECKS_PER_FILL
        if not any(limits) or (time.monotonic() < self._due and not much):
            return 0
        self._written = 0
        tell, deleted, deleted_records = self._get_callback(), 0, []
        with self._log.writing(give_up=give_up) as connection:
            for one, stop in _surplus(connection, limits):
                if tell is not None:
                    deleted_records += _read_records(connection, one, stop)
                catalog.trim(connection, one, stop)
                deleted += stop - one.first
        self._due = 0.0 if deleted else time.monotonic() + _INTERVAL_SECONDS
        if tell is not None and deleted_records:
            callbacks.call(LOG, f"{len(deleted_records)} records that were deleted", tell, deleted_records)
        return deleted


def _oldest(connection: sqlite3.Connection) -> list[PartitionState]:
    found = connection.execute(_OLDEST).fetchall()
    return [PartitionState(Partition(topic, number), *rest) for topic, number, *rest in found]


def _surplus(connection: sqlite3.Connection, limits: RetentionLimits) -> Iterator[tuple[PartitionState, int]]:
    """Yield partitions and the offsets to trim them to. The caller trims each before it asks for the next."""
    if limits.seconds:
        yield from _expired(connection, limits.seconds)
    if limits.bytes:
        yield from _oversized(connection, limits.bytes)


def _expired(connection: sqlite3.Connection, seconds: float) -> Iterator[tuple[PartitionState, int]]:
    limit = time.time() - seconds
    left = STEP_RECORDS
    for one in _oldest(connection):
        if one.stamp >= limit * blocks.MICROSECONDS or left <= 0:
            break
        stop = min(catalog.offset_at(connection, one, limit), one.first + left)
        left -= stop - one.first
        yield one, stop


def _oversized(connection: sqlite3.Connection, most: int) -> Iterator[tuple[PartitionState, int]]:
    used = _bytes_used(connection)
    partitions = _oldest(connection)
    held = sum(one.next - one.first for one in partitions)
    if used > most and held:
        oldest = partitions[0]
        surplus = math.ceil((used - most) * held / used)
        yield oldest, min(oldest.first + min(surplus, STEP_RECORDS), oldest.next)


def _read_records(connection: sqlite3.Connection, one: PartitionState, stop: int) -> list[Delivery]:
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
