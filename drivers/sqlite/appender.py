"""Writing records: which partition, which offset, one transaction for a batch."""

import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from notifier_kafka.driver import Receipt, Record, make_receipt
from notifier_kafka.errors import MessagingException

from . import catalog, rows
from .catalog import Head
from .logfile import LogFile
from .retention import Retention

LOG = logging.getLogger(__name__)

_ADVANCE = """
UPDATE partitions SET next = new.next, stamp = new.stamp
FROM (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS next,
        json_extract(value, '$[2]') AS stamp
    FROM json_each(?)
) AS new
WHERE partitions.id = new.id
"""


class _Batch(NamedTuple):
    rows: list[rows.Row]
    receipts: list[Receipt]
    size: int
    moves: list[tuple[int, int, int]]


class _Lane:
    """Where the next record of a partition goes."""

    __slots__ = ("_head", "partition", "row_id", "stamp")

    def __init__(self, head: Head) -> None:
        self._head = head
        self.partition = head.partition
        self.row_id = rows.first_id(head.id, head.next)
        # The clock may be set back; within a partition time may not.
        self.stamp = max(time.time_ns() // 1_000, head.stamp)

    def moved(self) -> bool:
        return self.row_id != rows.first_id(self._head.id, self._head.next)

    def move(self) -> tuple[int, int, int]:
        return self._head.id, self.row_id & rows.OFFSET_MASK, self.stamp


class Appender:
    """Writes batches for one publisher."""

    def __init__(self, log: LogFile, partitions: Callable[[], int], retention: Retention) -> None:
        self._log = log
        self._partitions = partitions
        self._retention = retention
        self._turn = 0

    def append(self, records: Sequence[Record], give_up: Callable[[], bool] | None = None) -> list[Receipt]:
        """Write ``records`` durably, all or none; stop waiting to once ``give_up()`` is true."""
        with self._log.writing(give_up=give_up) as connection:
            batch = self._place(records, self._heads(connection, {record.topic for record in records}))
            rows.insert(connection, batch.rows)
            connection.execute(_ADVANCE, (json.dumps(batch.moves),))
        self._tidy(batch.size)
        return batch.receipts

    def _heads(self, connection: sqlite3.Connection, topics: set[str]) -> dict[str, list[Head]]:
        heads = catalog.heads(connection, topics)
        if missing := sorted(topics - heads.keys()):
            for name in missing:
                catalog.create(connection, name, self._partitions())
            heads |= catalog.heads(connection, missing)
        return heads

    def _place(self, records: Sequence[Record], heads: dict[str, list[Head]]) -> _Batch:
        # Records without a key stay together in a batch and move on with the next one.
        self._turn += 1
        turn, pack, crc32 = self._turn, rows.pack_headers, zlib.crc32
        lanes = {topic: [_Lane(head) for head in partitions] for topic, partitions in heads.items()}
        batch: list[rows.Row] = []
        receipts = []
        size = 0
        for topic, value, key, headers in records:
            choice = lanes[topic]
            lane = choice[(turn if key is None else crc32(key)) % len(choice)]
            row_id = lane.row_id
            lane.row_id = row_id + 1
            batch.append((row_id, lane.stamp, key, value, pack(headers) if headers else None))
            receipts.append((lane.partition, row_id & rows.OFFSET_MASK))
            size += len(value or b"")
        moves = [lane.move() for choice in lanes.values() for lane in choice if lane.moved()]
        return _Batch(batch, list(map(make_receipt, receipts)), size, moves)

    def _tidy(self, size: int) -> None:
        # The batch is durable whatever comes now: an error of the housekeeping must not
        # have it written again.
        try:
            self._log.checkpoint(size)
            self._retention.step(size)
        except MessagingException as error:
            LOG.warning("Housekeeping is put off: %s", error)
