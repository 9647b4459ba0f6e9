"""Writing records: which partition, which offset, one transaction for a batch."""

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Record
from notifier_kafka.contract.outbox import Landed

from . import blocks, catalog
from .catalog import Head
from .logfile import LogFile
from .packing import pack_headers
from .retention import Retention

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
    blocks: list[blocks.Block]
    landed: Landed
    size: int
    moves: list[tuple[int, int, int]]


class _Lane:
    """Where the next record of a partition goes, and what goes there."""

    __slots__ = ("_head", "_start", "blocks", "next", "partition", "parts", "size", "stamp")

    def __init__(self, head: Head) -> None:
        self._head = head
        self._start = self.next = head.next
        self.partition = head.partition
        # The clock may be set back; within a partition time may not.
        self.stamp = max(time.time_ns() // 1_000, head.stamp)
        self.blocks: list[blocks.Block] = []
        self.parts: list[blocks.Part] = []
        self.size = 0

    def close_block(self) -> None:
        start = blocks.first_id(self._head.id, self._start)
        self.blocks.append(blocks.make_block(start, self.stamp, self.parts))
        self._start = self.next
        self.parts.clear()
        self.size = 0

    def move(self) -> tuple[int, int, int]:
        return self._head.id, self.next, self.stamp


class Appender:
    """Writes batches for one publisher."""

    def __init__(self, log: LogFile, partitions: Callable[[], int], retention: Retention) -> None:
        self._log = log
        self._partitions = partitions
        self._retention = retention
        self._turn = 0

    def append(self, records: Sequence[Record], give_up: Callable[[], bool] | None = None) -> Landed:
        """Write ``records`` durably, all or none; stop waiting to once ``give_up()`` is true."""
        with self._log.writing(give_up=give_up) as connection:
            batch = self._place(records, self._heads(connection, {topic for topic, _, _, _ in records}))
            blocks.insert(connection, batch.blocks)
            connection.execute(_ADVANCE, (json.dumps(batch.moves),))
        # The batch is durable whatever comes now: an error of this must not have it written again.
        self._retention.tidy(batch.size)
        return batch.landed

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
        turn, pack, crc32, most = self._turn, pack_headers, zlib.crc32, 3 * blocks.MOST_RECORDS
        lanes = {topic: [_Lane(head) for head in partitions] for topic, partitions in heads.items()}
        landed = Landed()
        add_partition, add_offset = landed.partitions.append, landed.offsets.append
        size = 0
        for topic, value, key, headers in records:
            choice = lanes[topic]
            lane = choice[(turn if key is None else crc32(key)) % len(choice)]
            offset = lane.next
            lane.next = offset + 1
            add_partition(lane.partition)
            add_offset(offset)
            parts = lane.parts
            parts += (key, value, pack(headers) if headers else None)
            if value:
                lane.size += len(value)
                size += len(value)
            if len(parts) == most or lane.size >= blocks.MOST_BYTES:
                lane.close_block()
        used = [lane for choice in lanes.values() for lane in choice if lane.parts or lane.blocks]
        for lane in used:
            if lane.parts:
                lane.close_block()
        made = [block for lane in used for block in lane.blocks]
        return _Batch(made, landed, size, [lane.move() for lane in used])
