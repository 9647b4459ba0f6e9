"""Administration in the words of the contract, over either client library."""

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping

from notifier_kafka.contract.driver import GroupDescription, Partition, Positions, TopicDescription
from notifier_kafka.errors import (
    CommitRefused,
    ConfigurationError,
    GroupBusy,
    TopicNotFound,
    TransportUnavailable,
)

from . import errors, naming
from .clients import protocol
from .errors import AccessDenied
from .listening import reading
from .properties import BATCH_OVERHEAD_BYTES, REQUEST_TIMEOUT_SECONDS
from .settings import KafkaSettings

BROKER_DEFAULT = -1
REPLICATION = "replication.factor"  # not a setting of topics; Java's tools have it as one
DEFAULT_MESSAGE_BYTES = 1024 * 1024  # the largest record that a topic takes by default


class KafkaAdmin:
    """An ``Admin``. ``connected`` returns the client's, and connects if needed."""

    def __init__(self, connected: Callable[[], protocol.Admin], settings: KafkaSettings) -> None:
        self._connected = connected
        self._settings = settings

    def create_topic(
        self, name: str, partitions: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        complaint = naming.complaint(name)
        if complaint:
            raise ConfigurationError(complaint)
        options = self._settings
        wanted = dict(settings or {})
        if options.max_request_size > DEFAULT_MESSAGE_BYTES:
            wanted.setdefault("max.message.bytes", str(options.max_request_size + BATCH_OVERHEAD_BYTES))
        count = options.topic_partitions if partitions is None else partitions
        if count == 0:
            raise ConfigurationError(f"topic {name}: 0 partitions: a topic has at least one")
        replicas = _number(wanted.pop(REPLICATION, options.topic_replication))
        try:
            self._connected().create(name, count, replicas, wanted)
        except AccessDenied:
            raise
        except TransportUnavailable as error:
            self._check_created(name, count, error)

    def ensure_topic(self, name: str) -> int:
        """Create a topic unless it exists; return how many partitions it has."""
        try:
            return len(self._connected().partitions(name))
        except TopicNotFound:
            with contextlib.suppress(errors.TopicExists):  # another process created it meanwhile
                self.create_topic(name)
        try:
            count = self._count(name)
            # Ask each leader once: one that does not know the topic yet refuses its first request, which
            # must not be a record. If one is away, the others need not wait for it.
            with contextlib.suppress(TransportUnavailable):
                reading.ends(self._connected(), [Partition(name, number) for number in range(count)])
        except TopicNotFound as error:
            raise TransportUnavailable(f"topic {name} was created but is not visible yet: {error}") from error
        return count

    def _check_created(self, name: str, count: int, why: TransportUnavailable) -> None:
        """Check whether the topic was created although no answer came; else raise ``why``."""
        try:
            found = self._count(name)
        except (TopicNotFound, TransportUnavailable):
            raise why from None
        if count not in (found, BROKER_DEFAULT):
            raise errors.TopicExists(f"topic {name} exists with {found} partitions, not {count}")

    def _count(self, name: str) -> int:
        """Count the partitions of a new topic, which not every broker knows at once."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while True:
            try:
                return len(self._connected().partitions(name))
            except TopicNotFound:
                if time.monotonic() > deadline:
                    raise
                time.sleep(reading.RETRY_PAUSE_SECONDS)

    def list_topics(self) -> list[str]:
        # The names of Kafka's internal topics begin with two underscores.
        return sorted(name for name in self._connected().topics() if not name.startswith("__"))

    def describe_topic(self, name: str) -> TopicDescription:
        admin = self._admin_for(name)
        parts = admin.partitions(name)
        details = {f"partition {one.partition.number}": _placement(one) for one in parts}
        try:
            details |= admin.settings(name)
        except AccessDenied:
            details["settings"] = "not shown: the user lacks the ACL DescribeConfigs on the topic"
        return TopicDescription(name, tuple(reading.spans(admin, [one.partition for one in parts])), details)

    def delete_topic(self, name: str) -> None:
        self._admin_for(name).delete(name)

    def purge_topic(self, name: str) -> None:
        admin = self._admin_for(name)
        there = reading.spans(admin, [one.partition for one in admin.partitions(name)])
        ends = {span.partition: span.stop for span in there if span.stop > span.start}
        if ends:
            admin.truncate(ends)

    def list_groups(self) -> list[str]:
        return sorted(name for name in self._connected().groups() if not naming.is_private(name))

    def describe_group(self, name: str) -> GroupDescription:
        admin = self._connected()
        # The members first, with retries until the group's coordinator is found: librdkafka crashes
        # when it is asked for positions before that (its issue 5040).
        members = self._members(admin, name)
        # The group's coordinator may be moving or starting.
        positions = reading.with_retries(lambda: admin.positions(name))
        topics = {partition.topic for partition in itertools.chain(positions, *members.values())}
        there = reading.spans(admin, reading.existing(admin, topics))
        lag = {at: stop - min(max(start, positions.get(at, start)), stop) for at, start, stop in there}
        return GroupDescription(name, members, positions, lag)

    def reset_group(self, name: str, positions: Positions) -> None:
        admin = self._connected()
        members = self._members(admin, name)
        if members:
            raise GroupBusy(f"group {name} has active members ({len(members)}): stop them first")
        try:
            admin.move(name, positions)
        except CommitRefused as refused:
            raise GroupBusy(f"group {name} has active members: stop them first: {refused}") from refused

    def _members(self, admin: protocol.Admin, group: str) -> dict[str, frozenset[Partition]]:
        """Ask for the members of a group; a new broker does not know its coordinator at once."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while True:
            try:
                return admin.members(group)
            except TopicNotFound:  # the answer for a group that nobody has joined yet
                return {}
            except TransportUnavailable as error:
                if isinstance(error, AccessDenied) or time.monotonic() > deadline:
                    raise
                time.sleep(reading.RETRY_PAUSE_SECONDS)

    def _admin_for(self, topic: str) -> protocol.Admin:
        complaint = naming.complaint(topic)
        if complaint:
            raise TopicNotFound(complaint)
        return self._connected()


def _number(replicas: str | int) -> int:
    try:
        return int(replicas)
    except ValueError:
        raise ConfigurationError(f"{REPLICATION} = {replicas!r}: it must be a number") from None


def _placement(one: protocol.Replicas) -> str:
    leader = "none" if one.leader < 0 else str(one.leader)
    replicas, in_sync = (" ".join(map(str, sorted(nodes))) for nodes in (one.replicas, one.in_sync))
    return f"leader {leader}; replicas {replicas}; in sync {in_sync}"
