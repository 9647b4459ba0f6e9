"""Appends records: chooses partitions and offsets, and writes a batch in one transaction."""

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Record
from notifier_kafka.contract.outbox import Landed

from . import blocks, catalog
from .catalog import PartitionState
from .logfile import LogFile
from .packing import pack_headers
from .retention import Retention

_ADVANCE_PARTITIONS = """
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
    advances: list[tuple[int, int, int]]


class _PartitionWriter:
    """The blocks that one batch adds to one partition."""

    __slots__ = ("_start", "_state", "blocks", "next", "partition", "parts", "size", "stamp")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._start = self.next = state.next
        self.partition = state.partition
        # The clock may be set back, but within a partition time must not.
        self.stamp = max(time.time_ns() // 1_000, state.stamp)
        self.blocks: list[blocks.Block] = []
        self.parts: list[blocks.Part] = []
        self.size = 0

    def close_block(self) -> None:
        start = blocks.first_id(self._state.id, self._start)
        self.blocks.append(blocks.make_block(start, self.stamp, self.parts))
        self._start = self.next
        self.parts.clear()
        self.size = 0

    def advance(self) -> tuple[int, int, int]:
        return self._state.id, self.next, self.stamp


class Appender:
    """Writes batches for one publisher."""

    def __init__(self, log: LogFile, partitions: Callable[[], int], retention: Retention) -> None:
        self._log = log
        self._partitions = partitions
        self._retention = retention
        self._turn = 0

    def append(self, records: Sequence[Record], give_up: Callable[[], bool] | None = None) -> Landed:
        """Write ``records`` durably, all or none; stop waiting for the lock when ``give_up()`` is true."""
        with self._log.writing(give_up=give_up) as connection:
            batch = self._distribute(
                records, self._partition_states(connection, {topic for topic, _, _, _ in records})
            )
            blocks.insert(connection, batch.blocks)
            connection.execute(_ADVANCE_PARTITIONS, (json.dumps(batch.advances),))
        # The batch is durable now: an error of the clean-up must not cause a second write.
        self._retention.clean_up(batch.size)
        return batch.landed

    def _partition_states(
        self, connection: sqlite3.Connection, topics: set[str]
    ) -> dict[str, list[PartitionState]]:
        states = catalog.states(connection, topics)
        if missing := sorted(topics - states.keys()):
            for name in missing:
                catalog.create(connection, name, self._partitions())
            states |= catalog.states(connection, missing)
        return states

    def _distribute(self, records: Sequence[Record], states: dict[str, list[PartitionState]]) -> _Batch:
        # Records without a key stay together within a batch; the next batch takes the next partition.
        self._turn += 1
        turn, pack, crc32, most = self._turn, pack_headers, zlib.crc32, 3 * blocks.BLOCK_RECORDS
        writers = {
            topic: [_PartitionWriter(state) for state in partitions] for topic, partitions in states.items()
        }
        landed = Landed()
        add_partition, add_offset = landed.partitions.append, landed.offsets.append
        size = 0
        for topic, value, key, headers in records:
            choice = writers[topic]
            writer = choice[(turn if key is None else crc32(key)) % len(choice)]
            offset = writer.next
            writer.next = offset + 1
            add_partition(writer.partition)
            add_offset(offset)
            parts = writer.parts
            parts += (key, value, pack(headers) if headers else None)
            if value:
                writer.size += len(value)
                size += len(value)
            if len(parts) == most or writer.size >= blocks.BLOCK_BYTES:
                writer.close_block()
        used = [writer for choice in writers.values() for writer in choice if writer.parts or writer.blocks]
        for writer in used:
            if writer.parts:
                writer.close_block()
        made = [block for writer in used for block in writer.blocks]
        return _Batch(made, landed, size, [writer.advance() for writer in used])
