"""Topics and their partitions: create and delete them, find their offsets."""

import json
import math
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import ConfigurationError, TopicNotFound

from . import blocks

NAME_CHARACTERS = 249


class PartitionState(NamedTuple):
    """One partition now: its first offset that is kept, its next offset, the time of its newest record."""

    partition: Partition
    id: int
    first: int
    next: int
    stamp: int


# One row, so that any number of partitions costs two steps (see blocks.py).
_STATES = """
SELECT json_group_array(json_array(t.name, p.number, p.id, p.first, p.next, p.stamp))
FROM topics t JOIN partitions p ON p.topic_id = t.id
WHERE t.name IN (SELECT value FROM json_each(?))
"""


def states(connection: sqlite3.Connection, topics: Iterable[str]) -> dict[str, list[PartitionState]]:
    """Read the partitions of the given topics, in order of their numbers; unknown topics are left out."""
    (found,) = connection.execute(_STATES, (json.dumps(list(topics)),)).fetchone()
    by_topic: dict[str, list[PartitionState]] = {}
    for name, number, *rest in sorted(json.loads(found)):
        by_topic.setdefault(name, []).append(PartitionState(Partition(name, number), *rest))
    return by_topic


def state(connection: sqlite3.Connection, partition: Partition, path: str) -> PartitionState:
    """Read one partition."""
    for one in states(connection, [partition.topic]).get(partition.topic, []):
        if one.partition == partition:
            return one
    raise TopicNotFound(f"log {path}: there is no partition {partition.number} of topic {partition.topic!r}")


def create(connection: sqlite3.Connection, name: str, partitions: int) -> None:
    """Create a topic, and let every group rebalance."""
    check_name(name)
    topic = connection.execute("INSERT INTO topics (name) VALUES (?)", (name,)).lastrowid
    connection.execute(
        "INSERT INTO partitions (topic_id, number) SELECT ?, value FROM json_each(?)",
        (topic, json.dumps(list(range(partitions)))),
    )
    connection.execute(
        "INSERT INTO positions (group_id, partition_id, offset) SELECT a.group_id, p.id, 0 "
        "FROM awaited a JOIN partitions p ON p.topic_id = ? WHERE a.topic = ?",
        (topic, name),
    )
    connection.execute("DELETE FROM awaited WHERE topic = ?", (name,))
    notify_groups(connection)


def delete(connection: sqlite3.Connection, name: str) -> None:
    """Delete a topic that has no records; the groups that read it await it from now on."""
    connection.execute(
        "INSERT INTO awaited (group_id, topic) SELECT DISTINCT o.group_id, t.name FROM positions o "
        "JOIN partitions p ON p.id = o.partition_id JOIN topics t ON t.id = p.topic_id "
        "WHERE t.name = ? ON CONFLICT DO NOTHING",
        (name,),
    )
    connection.execute("DELETE FROM topics WHERE name = ?", (name,))
    notify_groups(connection)


def notify_groups(connection: sqlite3.Connection) -> None:
    """Make the members of every group rebalance."""
    connection.execute("UPDATE groups SET generation = generation + 1")


def check_name(name: str) -> None:
    """Refuse an invalid topic name."""
    if not 0 < len(name) <= NAME_CHARACTERS or not name.isprintable():
        raise ConfigurationError(
            f"topic name {name!a}: 1 to {NAME_CHARACTERS} printable characters are needed"
        )


def offset_at(connection: sqlite3.Connection, one: PartitionState, moment: float) -> int:
    """Find the first offset with a record of ``moment`` (seconds since the epoch) or later."""
    # Rounded to microseconds as stored times are; an infinite moment cannot be rounded.
    wanted = round(moment * blocks.MICROSECONDS) if math.isfinite(moment) else moment
    low, high = one.first, one.next
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(
            "SELECT stamp FROM blocks WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (blocks.first_id(one.id), blocks.first_id(one.id, middle)),
        ).fetchone()
        # None: deleted meanwhile, and so were all before it. The wanted offset is higher.
        if found is None or found[0] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def trim(connection: sqlite3.Connection, one: PartitionState, stop: int) -> None:
    """Delete the records before offset ``stop``. Their offsets are not used again.

    A block is freed when its last record is deleted.
    """
    end = blocks.first_id(one.id, stop)
    connection.execute(
        "DELETE FROM blocks WHERE id >= ? AND id < ? AND id + count <= ?", (blocks.first_id(one.id), end, end)
    )
    connection.execute("UPDATE partitions SET first = ? WHERE id = ? AND first < ?", (stop, one.id, stop))
