"""A member of a group: its lease, the partitions that it claims, the positions of the group."""

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Partition, Start

from . import assignment, catalog
from .catalog import PartitionState

_RECORD_POSITIONS = """
INSERT INTO positions (group_id, partition_id, offset)
SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
WHERE true
"""
_RECORD_FORWARDS = _RECORD_POSITIONS + (
    "ON CONFLICT DO UPDATE SET offset = excluded.offset WHERE excluded.offset > offset"
)
_RECORD_ONCE = _RECORD_POSITIONS + "ON CONFLICT DO NOTHING"
RECORD_ANYWHERE = _RECORD_POSITIONS + "ON CONFLICT DO UPDATE SET offset = excluded.offset"

_TAKE_CLAIM = """
INSERT INTO claims (group_id, partition_id, member_id) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET member_id = excluded.member_id
"""

LIVE = "expires > :now AND expires <= :now + session"


class Claim(NamedTuple):
    """A partition that this member owns, and the position to continue from."""

    partition: Partition
    id: int
    position: int


class MemberSettings(NamedTuple):
    """The group, topics and start that a member joins with, and its session timeout in seconds."""

    group: str | None
    topics: Sequence[str]
    start: Start
    session: float


class Membership:
    """The rows of one member. Each method runs in the transaction of its caller."""

    def __init__(self, settings: MemberSettings) -> None:
        self.id = uuid.uuid4().hex
        self._settings = settings
        self._group = settings.group or f"private-{self.id}"
        self._group_id = 0
        self._generation = -1
        self._joined = False
        # The positions of partitions that have none recorded. A private group whose lease ran
        # out continues from them.
        self._positions: dict[int, int] = {}

    def is_current(self, connection: sqlite3.Connection) -> bool:
        """Tell, at low cost, whether members, claims and topics are as ``rebalance`` left them."""
        found = connection.execute("SELECT generation FROM groups WHERE id = ?", (self._group_id,)).fetchone()
        return bool(found) and found[0] == self._generation

    def has_dead_owner(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a member whose lease has ended still owns partitions."""
        return bool(
            connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM claims JOIN members ON id = member_id "  # noqa: S608  # nosec B608
                f"WHERE claims.group_id = :group AND id <> :me AND NOT ({LIVE}))",
                {"group": self._group_id, "me": self.id, "now": time.monotonic()},
            ).fetchone()[0]
        )

    def renew(self, connection: sqlite3.Connection) -> None:
        """Extend the lease, unless another member removed this one as dead."""
        connection.execute("UPDATE members SET expires = ? WHERE id = ?", (self._expiry(), self.id))

    def rebalance(self, connection: sqlite3.Connection) -> list[Claim]:
        """Join if necessary, release partitions above the fair share, claim free ones below it."""
        changed = self._register(connection)
        members = self._live_members(connection)
        states = catalog.states(connection, {topic for topics in members.values() for topic in topics})
        by_id = {state.id: state for partitions in states.values() for state in partitions}
        if not self._joined:
            self._record_start(connection, states)
        owners = self._owners(connection)
        changed |= self._update_claims(connection, _candidates(members, by_id), owners)
        own = [by_id[partition] for partition, owner in owners.items() if owner == self.id]
        self._remove_dead(connection, members)
        if changed:
            connection.execute(
                "UPDATE groups SET generation = generation + 1 WHERE id = ?", (self._group_id,)
            )
        self._joined = True
        self._generation = connection.execute(
            "SELECT generation FROM groups WHERE id = ?", (self._group_id,)
        ).fetchone()[0]
        return self._claims(connection, own)

    def commit(self, connection: sqlite3.Connection, positions: Mapping[int, int]) -> set[int]:
        """Record positions by partition id if all are owned; return the ids that are not."""
        owners = self._owners(connection)
        refused = {partition for partition in positions if owners.get(partition) != self.id}
        if not refused:
            connection.execute(_RECORD_FORWARDS, (self._group_id, json.dumps(list(positions.items()))))
            self._positions |= positions
        return refused

    def leave(self, connection: sqlite3.Connection) -> None:
        """Release the claims at once; delete a private group."""
        connection.execute("DELETE FROM members WHERE id = ?", (self.id,))
        connection.execute("UPDATE groups SET generation = generation + 1 WHERE id = ?", (self._group_id,))
        connection.execute("DELETE FROM groups WHERE id = ? AND private", (self._group_id,))

    def _expiry(self) -> float:
        return time.monotonic() + self._settings.session

    def _register(self, connection: sqlite3.Connection) -> bool:
        """Insert the rows of group and member where missing; return whether the member is new."""
        if not self._joined:
            _end_private_groups(connection)
        connection.execute(
            "INSERT INTO groups (name, private) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (self._group, self._settings.group is None),
        )
        (self._group_id,) = connection.execute(
            "SELECT id FROM groups WHERE name = ?", (self._group,)
        ).fetchone()
        is_new = not connection.execute("SELECT 1 FROM members WHERE id = ?", (self.id,)).fetchone()
        if is_new:
            connection.execute(
                "INSERT INTO members (id, group_id, topics, session, expires) VALUES (?, ?, ?, ?, 0)",
                (self.id, self._group_id, json.dumps(list(self._settings.topics)), self._settings.session),
            )
        self.renew(connection)
        return is_new

    def _live_members(self, connection: sqlite3.Connection) -> dict[str, list[str]]:
        found = connection.execute(
            f"SELECT id, topics FROM members WHERE group_id = :group AND {LIVE}",  # noqa: S608  # nosec B608
            {"group": self._group_id, "now": time.monotonic()},
        ).fetchall()
        return {member: json.loads(topics) for member, topics in found}

    def _owners(self, connection: sqlite3.Connection) -> dict[int, str]:
        return dict(
            connection.execute(
                "SELECT partition_id, member_id FROM claims WHERE group_id = ?", (self._group_id,)
            ).fetchall()
        )

    def _record_start(
        self, connection: sqlite3.Connection, states: Mapping[str, list[PartitionState]]
    ) -> None:
        """Record the start positions of partitions for which the group has no position yet."""
        start = self._settings.start
        if start == "earliest":
            return
        # The group must not miss a record that is published from now on, also in topics created later.
        missing = [topic for topic in self._settings.topics if topic not in states]
        connection.execute(
            "INSERT INTO awaited (group_id, topic) SELECT ?, value FROM json_each(?) WHERE true "
            "ON CONFLICT DO NOTHING",
            (self._group_id, json.dumps(missing)),
        )
        starts = []
        for state in [state for topic in self._settings.topics for state in states.get(topic, [])]:
            offset = state.next if start == "latest" else catalog.offset_at(connection, state, start)
            starts.append((state.id, offset))
        connection.execute(_RECORD_ONCE, (self._group_id, json.dumps(starts)))

    def _update_claims(
        self,
        connection: sqlite3.Connection,
        candidates: Mapping[int, list[str]],
        owners: dict[int, str],
    ) -> bool:
        """Change own claims, and ``owners``, towards the fair assignment; return whether any changed."""
        live = {member for members in candidates.values() for member in members}
        shares = assignment.assign(candidates, owners)
        changed = False
        for partition in [*shares.keys() | owners.keys()]:
            owner, share = owners.get(partition), shares.get(partition)
            if owner == self.id and share != self.id:
                connection.execute(
                    "DELETE FROM claims WHERE group_id = ? AND partition_id = ?",
                    (self._group_id, partition),
                )
                del owners[partition]
                changed = True
            elif share == self.id != owner and owner not in live:
                connection.execute(_TAKE_CLAIM, (self._group_id, partition, self.id))
                owners[partition] = self.id
                changed = True
        return changed

    def _remove_dead(self, connection: sqlite3.Connection, live: Mapping[str, object]) -> None:
        # A dead member that still has a claim may return to it until another member takes it.
        connection.execute(
            "DELETE FROM members WHERE group_id = ? AND id NOT IN (SELECT value FROM json_each(?)) "
            "AND NOT EXISTS (SELECT 1 FROM claims WHERE member_id = id)",
            (self._group_id, json.dumps(list(live))),
        )

    def _claims(self, connection: sqlite3.Connection, own: Sequence[PartitionState]) -> list[Claim]:
        positions = dict(
            connection.execute(
                "SELECT partition_id, offset FROM positions WHERE group_id = ?", (self._group_id,)
            ).fetchall()
        )
        for state in own:
            self._positions[state.id] = positions.get(state.id, self._positions.get(state.id, state.first))
        return [Claim(state.partition, state.id, self._positions[state.id]) for state in own]


def _candidates(
    members: Mapping[str, list[str]], states: Mapping[int, PartitionState]
) -> dict[int, list[str]]:
    return {
        partition: [member for member, topics in members.items() if state.partition.topic in topics]
        for partition, state in states.items()
    }


def _end_private_groups(connection: sqlite3.Connection) -> None:
    """Delete the private groups of dead members."""
    connection.execute(
        f"DELETE FROM groups WHERE private AND id NOT IN (SELECT group_id FROM members WHERE {LIVE})",  # noqa: S608  # nosec B608
        {"now": time.monotonic()},
    )
