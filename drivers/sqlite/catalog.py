"""Topics and their partitions: making them, and where each begins and ends."""

import json
import math
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import ConfigurationError, TopicNotFound

from . import blocks

LONGEST_NAME = 249


class Head(NamedTuple):
    """One partition as it is: what is kept, what comes next, when the newest came."""

    partition: Partition
    id: int
    first: int
    next: int
    stamp: int


# One row, so that it costs two steps however many partitions there are (see blocks.py).
_HEADS = """
SELECT json_group_array(json_array(t.name, p.number, p.id, p.first, p.next, p.stamp))
FROM topics t JOIN partitions p ON p.topic_id = t.id
WHERE t.name IN (SELECT value FROM json_each(?))
"""


def heads(connection: sqlite3.Connection, topics: Iterable[str]) -> dict[str, list[Head]]:
    """Look up the partitions of those topics that exist, in order of their numbers."""
    (found,) = connection.execute(_HEADS, (json.dumps(list(topics)),)).fetchone()
    by_topic: dict[str, list[Head]] = {}
    for name, number, *rest in sorted(json.loads(found)):
        by_topic.setdefault(name, []).append(Head(Partition(name, number), *rest))
    return by_topic


def head(connection: sqlite3.Connection, partition: Partition, path: str) -> Head:
    """Look up one partition."""
    for one in heads(connection, [partition.topic]).get(partition.topic, []):
        if one.partition == partition:
            return one
    raise TopicNotFound(f"log {path}: there is no partition {partition.number} of topic {partition.topic!r}")


def create(connection: sqlite3.Connection, name: str, partitions: int) -> None:
    """Make a topic, and let every group look whether it concerns it."""
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
    touch_groups(connection)


def delete(connection: sqlite3.Connection, name: str) -> None:
    """Delete a topic without records; the groups that read it wait for it from now on."""
    connection.execute(
        "INSERT INTO awaited (group_id, topic) SELECT DISTINCT o.group_id, t.name FROM positions o "
        "JOIN partitions p ON p.id = o.partition_id JOIN topics t ON t.id = p.topic_id "
        "WHERE t.name = ? ON CONFLICT DO NOTHING",
        (name,),
    )
    connection.execute("DELETE FROM topics WHERE name = ?", (name,))
    touch_groups(connection)


def touch_groups(connection: sqlite3.Connection) -> None:
    """Tell the members of every group that there is something to look at."""
    connection.execute("UPDATE groups SET generation = generation + 1")


def check_name(name: str) -> None:
    """Refuse a name that no topic can have."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ConfigurationError(f"topic name {name!a}: 1 to {LONGEST_NAME} printable characters are needed")


def offset_at(connection: sqlite3.Connection, one: Head, moment: float) -> int:
    """Find the first offset whose record came at or after ``moment`` (seconds since the epoch)."""
    # To the microsecond that was stored, which no float need hit; infinity is never stored.
    wanted = round(moment * blocks.MICROSECONDS) if math.isfinite(moment) else moment
    low, high = one.first, one.next
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(
            "SELECT stamp FROM blocks WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (blocks.first_id(one.id), blocks.first_id(one.id, middle)),
        ).fetchone()
        # Deleted meanwhile: then all before it are too, and what is sought lies behind.
        if found is None or found[0] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def trim(connection: sqlite3.Connection, one: Head, stop: int) -> None:
    """Delete the records before offset ``stop``; the offsets do not come back.

    Their room comes back with the last one of their block.
    """
    end = blocks.first_id(one.id, stop)
    connection.execute(
        "DELETE FROM blocks WHERE id >= ? AND id < ? AND id + count <= ?", (blocks.first_id(one.id), end, end)
    )
    connection.execute("UPDATE partitions SET first = ? WHERE id = ? AND first < ?", (stop, one.id, stop))
