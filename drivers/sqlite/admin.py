"""Administration of topics and groups, for operators and tools."""

import itertools
import json
import sqlite3
import time
from collections.abc import Callable, Mapping

from notifier_kafka.contract.driver import GroupDescription, Partition, Positions, Span, TopicDescription
from notifier_kafka.errors import ConfigurationError, GroupBusy, TopicNotFound

from . import blocks, catalog, membership
from .catalog import PartitionState
from .logfile import LogFile
from .retention import STEP_RECORDS


class LogAdmin:
    """An ``Admin``."""

    def __init__(self, log: LogFile, partitions: Callable[[], int]) -> None:
        self._log = log
        self._partitions = partitions

    def create_topic(
        self, name: str, partitions: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic. An existing topic is an error only when its number of partitions differs."""
        if settings:
            raise ConfigurationError(
                f"topic {name!r}: SQLite topics have no settings, but {', '.join(sorted(settings))} was given"
            )
        count = self._partitions() if partitions is None else partitions
        if count < 1:
            raise ConfigurationError(f"topic {name!r}: {count} partitions; at least 1 is needed")
        with self._log.writing() as connection:
            existing = catalog.states(connection, [name]).get(name)
            if existing is None:
                catalog.create(connection, name, count)
            elif partitions not in (None, len(existing)):
                raise ConfigurationError(
                    f"topic {name!r} exists with {len(existing)} partitions, not {partitions}; "
                    "delete it first"
                )

    def list_topics(self) -> list[str]:
        with self._log.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM topics ORDER BY name")]

    def describe_topic(self, name: str) -> TopicDescription:
        with self._log.reading() as connection:
            states = self._existing(connection, name)
        spans = tuple(Span(state.partition, state.first, state.next) for state in states)
        return TopicDescription(name, spans, {"file": self._log.path})

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its positions. Members that read it continue without it."""
        # Most of it in small steps, so that no other process waits long for the lock.
        self.purge_topic(name)
        with self._log.writing() as connection:
            for state in self._existing(connection, name):
                catalog.trim(connection, state, state.next)
            catalog.delete(connection, name)

    def purge_topic(self, name: str) -> None:
        with self._log.reading() as connection:
            ends = {state.id: state.next for state in self._existing(connection, name)}
        while self._purge_step(name, ends):
            pass

    def list_groups(self) -> list[str]:
        with self._log.reading() as connection:
            found = connection.execute("SELECT name FROM groups WHERE NOT private ORDER BY name")
            return [name for (name,) in found]

    def describe_group(self, name: str) -> GroupDescription:
        """Describe a group. A group that does not exist has no members and no positions."""
        with self._log.reading() as connection:
            connection.execute("BEGIN")
            try:
                members = _members(connection, name)
                positions = _positions(connection, name)
                topics = {partition.topic for partition in itertools.chain(positions, *members.values())}
                states = catalog.states(connection, topics)
            finally:
                connection.execute("COMMIT")
        lag = {
            state.partition: max(0, state.next - max(positions.get(state.partition, 0), state.first))
            for partitions in states.values()
            for state in partitions
        }
        return GroupDescription(name, members, positions, lag)

    def reset_group(self, name: str, positions: Positions) -> None:
        with self._log.writing() as connection:
            if live := _members(connection, name):
                raise GroupBusy(
                    f"group {name!r} has active members ({len(live)}): "
                    "stop them, or wait until their leases end"
                )
            states = catalog.states(connection, {partition.topic for partition in positions})
            ids = {state.partition: state.id for partitions in states.values() for state in partitions}
            if unknown := sorted(positions.keys() - ids.keys()):
                raise TopicNotFound(
                    f"log {self._log.path}: there is no {unknown[0].topic}[{unknown[0].number}]"
                )
            connection.execute(
                "INSERT INTO groups (name, private) VALUES (?, 0) ON CONFLICT DO NOTHING", (name,)
            )
            (group,) = connection.execute("SELECT id FROM groups WHERE name = ?", (name,)).fetchone()
            wanted = [
                (ids[partition], max(0, min(offset, blocks.OFFSET_MASK)))
                for partition, offset in positions.items()
            ]
            connection.execute(membership.RECORD_ANYWHERE, (group, json.dumps(wanted)))
            # A member that only seems dead must not continue from its position before the reset.
            connection.execute("DELETE FROM members WHERE group_id = ?", (group,))
            connection.execute("UPDATE groups SET generation = generation + 1 WHERE id = ?", (group,))

    def _existing(self, connection: sqlite3.Connection, name: str) -> list[PartitionState]:
        states = catalog.states(connection, [name])
        if name not in states:
            raise TopicNotFound(f"log {self._log.path}: there is no topic {name!r}")
        return states[name]

    def _purge_step(self, name: str, ends: Mapping[int, int]) -> bool:
        """Delete some of the records before ``ends``; return whether there may be more."""
        with self._log.writing() as connection:
            for state in catalog.states(connection, [name]).get(name, []):
                stop = min(ends.get(state.id, 0), state.first + STEP_RECORDS)
                if stop > state.first:
                    catalog.trim(connection, state, stop)
                    return True
        return False


def _members(connection: sqlite3.Connection, name: str) -> dict[str, frozenset[Partition]]:
    found = connection.execute(
        "SELECT m.id, t.name, p.number FROM groups g JOIN members m ON m.group_id = g.id "  # noqa: S608  # nosec B608
        "LEFT JOIN claims c ON c.member_id = m.id LEFT JOIN partitions p ON p.id = c.partition_id "
        f"LEFT JOIN topics t ON t.id = p.topic_id WHERE g.name = :name AND {membership.LIVE}",
        {"name": name, "now": time.monotonic()},
    ).fetchall()
    members: dict[str, frozenset[Partition]] = {}
    for member, topic, number in found:
        own = frozenset() if topic is None else frozenset([Partition(topic, number)])
        members[member] = members.get(member, frozenset()) | own
    return members


def _positions(connection: sqlite3.Connection, name: str) -> dict[Partition, int]:
    found = connection.execute(
        "SELECT t.name, p.number, o.offset FROM groups g JOIN positions o ON o.group_id = g.id "
        "JOIN partitions p ON p.id = o.partition_id JOIN topics t ON t.id = p.topic_id "
        "WHERE g.name = ? ORDER BY t.name, p.number",
        (name,),
    ).fetchall()
    return {Partition(topic, number): offset for topic, number, offset in found}
