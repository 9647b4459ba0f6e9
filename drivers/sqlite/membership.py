"""A member of a group: its lease, its claims on partitions, the group's positions."""

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Partition, Start

from . import assignment, catalog
from .catalog import Head

_RECORD_POSITIONS = """
INSERT INTO positions (group_id, partition_id, offset)
SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
WHERE true
"""
_FORWARDS = _RECORD_POSITIONS + (
    "ON CONFLICT DO UPDATE SET offset = excluded.offset WHERE excluded.offset > offset"
)
_ONCE = _RECORD_POSITIONS + "ON CONFLICT DO NOTHING"
ANYWHERE = _RECORD_POSITIONS + "ON CONFLICT DO UPDATE SET offset = excluded.offset"

_TAKE = """
INSERT INTO claims (group_id, partition_id, member_id) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET member_id = excluded.member_id
"""

LIVE = "expires > :now AND expires <= :now + session"


class Claim(NamedTuple):
    """A partition that this member owns, and where it goes on."""

    partition: Partition
    id: int
    position: int


class Terms(NamedTuple):
    """What a member asks for."""

    group: str | None
    topics: Sequence[str]
    start: Start
    session: float


class Membership:
    """The row of one member and what hangs on it. Each method runs in the caller's transaction."""

    def __init__(self, terms: Terms) -> None:
        self.id = uuid.uuid4().hex
        self._terms = terms
        self._group = terms.group or f"private-{self.id}"
        self._group_id = 0
        self._generation = -1
        self._joined = False
        # Where partitions without a recorded position go on; a private group that was
        # given up for dead finds its way by it.
        self._known: dict[int, int] = {}

    def is_current(self, connection: sqlite3.Connection) -> bool:
        """Tell cheaply whether members, claims and topics are as ``rebalance`` left them."""
        found = connection.execute("SELECT generation FROM groups WHERE id = ?", (self._group_id,)).fetchone()
        return bool(found) and found[0] == self._generation

    def sees_dead(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a member whose lease ran out still holds partitions."""
        return bool(
            connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM claims JOIN members ON id = member_id "  # noqa: S608  # nosec B608
                f"WHERE claims.group_id = :group AND id <> :me AND NOT ({LIVE}))",
                {"group": self._group_id, "me": self.id, "now": time.monotonic()},
            ).fetchone()[0]
        )

    def renew(self, connection: sqlite3.Connection) -> None:
        """Prolong the lease, if nobody gave this member up for dead."""
        connection.execute("UPDATE members SET expires = ? WHERE id = ?", (self._expiry(), self.id))

    def rebalance(self, connection: sqlite3.Connection) -> list[Claim]:
        """Join if need be, give up what is above the fair share, take what is free of it."""
        changed = self._enter(connection)
        members = self._live_members(connection)
        heads = catalog.heads(connection, {topic for topics in members.values() for topic in topics})
        by_id = {head.id: head for partitions in heads.values() for head in partitions}
        if not self._joined:
            self._record_start(connection, heads)
        owners = self._owners(connection)
        changed |= self._trade(connection, _candidates(members, by_id), owners)
        mine = [by_id[partition] for partition, owner in owners.items() if owner == self.id]
        self._leave_dead(connection, members)
        if changed:
            connection.execute(
                "UPDATE groups SET generation = generation + 1 WHERE id = ?", (self._group_id,)
            )
        self._joined = True
        self._generation = connection.execute(
            "SELECT generation FROM groups WHERE id = ?", (self._group_id,)
        ).fetchone()[0]
        return self._claims(connection, mine)

    def commit(self, connection: sqlite3.Connection, positions: Mapping[int, int]) -> set[int]:
        """Record positions by partition id, if all are owned; return those that are not."""
        owners = self._owners(connection)
        refused = {partition for partition in positions if owners.get(partition) != self.id}
        if not refused:
            connection.execute(_FORWARDS, (self._group_id, json.dumps(list(positions.items()))))
            self._known |= positions
        return refused

    def leave(self, connection: sqlite3.Connection) -> None:
        """Free the claims at once; a private group ends."""
        connection.execute("DELETE FROM members WHERE id = ?", (self.id,))
        connection.execute("UPDATE groups SET generation = generation + 1 WHERE id = ?", (self._group_id,))
        connection.execute("DELETE FROM groups WHERE id = ? AND private", (self._group_id,))

    def _expiry(self) -> float:
        return time.monotonic() + self._terms.session

    def _enter(self, connection: sqlite3.Connection) -> bool:
        """Write the rows of group and member; tell whether the member is new."""
        if not self._joined:
            _end_private_groups(connection)
        connection.execute(
            "INSERT INTO groups (name, private) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (self._group, self._terms.group is None),
        )
        (self._group_id,) = connection.execute(
            "SELECT id FROM groups WHERE name = ?", (self._group,)
        ).fetchone()
        is_new = not connection.execute("SELECT 1 FROM members WHERE id = ?", (self.id,)).fetchone()
        if is_new:
            connection.execute(
                "INSERT INTO members (id, group_id, topics, session, expires) VALUES (?, ?, ?, ?, 0)",
                (self.id, self._group_id, json.dumps(list(self._terms.topics)), self._terms.session),
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

    def _record_start(self, connection: sqlite3.Connection, heads: Mapping[str, list[Head]]) -> None:
        """Fix where the group begins in the partitions of which it has no position yet."""
        start = self._terms.start
        if start == "earliest":
            return
        # Nothing that is published from now on may be missed, nor what appears from now on.
        missing = [topic for topic in self._terms.topics if topic not in heads]
        connection.execute(
            "INSERT INTO awaited (group_id, topic) SELECT ?, value FROM json_each(?) WHERE true "
            "ON CONFLICT DO NOTHING",
            (self._group_id, json.dumps(missing)),
        )
        own = [head for topic in self._terms.topics for head in heads.get(topic, [])]
        begin = []
        for head in own:
            offset = head.next if start == "latest" else catalog.offset_at(connection, head, start)
            begin.append((head.id, offset))
        connection.execute(_ONCE, (self._group_id, json.dumps(begin)))

    def _trade(
        self,
        connection: sqlite3.Connection,
        candidates: Mapping[int, list[str]],
        owners: dict[int, str],
    ) -> bool:
        """Bring the claims, and ``owners``, as near to the fair shares as this member may."""
        live = {member for members in candidates.values() for member in members}
        shares = assignment.share(candidates, owners)
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
                connection.execute(_TAKE, (self._group_id, partition, self.id))
                owners[partition] = self.id
                changed = True
        return changed

    def _leave_dead(self, connection: sqlite3.Connection, live: Mapping[str, object]) -> None:
        # Those that still hold a claim may come back to it while nobody wants it.
        connection.execute(
            "DELETE FROM members WHERE group_id = ? AND id NOT IN (SELECT value FROM json_each(?)) "
            "AND NOT EXISTS (SELECT 1 FROM claims WHERE member_id = id)",
            (self._group_id, json.dumps(list(live))),
        )

    def _claims(self, connection: sqlite3.Connection, mine: Sequence[Head]) -> list[Claim]:
        positions = dict(
            connection.execute(
                "SELECT partition_id, offset FROM positions WHERE group_id = ?", (self._group_id,)
            ).fetchall()
        )
        for head in mine:
            self._known[head.id] = positions.get(head.id, self._known.get(head.id, head.first))
        return [Claim(head.partition, head.id, self._known[head.id]) for head in mine]


def _candidates(members: Mapping[str, list[str]], heads: Mapping[int, Head]) -> dict[int, list[str]]:
    return {
        partition: [member for member, topics in members.items() if head.partition.topic in topics]
        for partition, head in heads.items()
    }


def _end_private_groups(connection: sqlite3.Connection) -> None:
    """Delete private groups whose member died."""
    connection.execute(
        f"DELETE FROM groups WHERE private AND id NOT IN (SELECT group_id FROM members WHERE {LIVE})",  # noqa: S608  # nosec B608
        {"now": time.monotonic()},
    )
