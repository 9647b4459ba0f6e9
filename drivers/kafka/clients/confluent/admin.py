"""confluent-kafka behind the seam: administration."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import confluent_kafka
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, OffsetSpec

from notifier_kafka.contract.driver import Partition, Positions
from notifier_kafka.errors import ConfigurationError

from ... import diagnosis, properties
from ..protocol import EARLIEST, LATEST, Replicas
from .connection import Link, at_positions, listed, made, translate

UNHEARD = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)  # noqa: SLF001 - their public names
TIMEOUT = properties.REQUEST_TIMEOUT
# What most commands ask first; within the time that a call may cost the reason is looked for as well.
FIRST = TIMEOUT - diagnosis.PATIENCE
OWN = ConfigSource.DYNAMIC_TOPIC_CONFIG.value


class Admin:
    """Every call returns when its futures are done, bounded by the request timeout."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._link = Link(config)
        self._config = dict(config)
        self._client = made(AdminClient, config, self._link)
        self._isolation = IsolationLevel.READ_COMMITTED

    def topics(self) -> list[str]:
        return list(self._call("topics", lambda: self._client.list_topics(timeout=FIRST)).topics)

    def partitions(self, topic: str) -> list[Replicas]:
        what = f"topic {topic}"
        found = self._wait(what, self._client.describe_topics, TopicCollection([topic]))[topic]
        return [
            Replicas(
                Partition(topic, part.id),
                -1 if part.leader is None else part.leader.id,
                tuple(node.id for node in part.replicas),
                tuple(node.id for node in part.isr),
            )
            for part in found.partitions
        ]

    def identities(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of those topics that are there."""
        asked = TopicCollection(list(topics))

        def ask() -> dict[str, str]:
            futures = self._client.describe_topics(asked, request_timeout=TIMEOUT)
            return {name: str(future.result().topic_id) for name, future in futures.items() if _found(future)}

        found: dict[str, str] = self._call("topics", ask)
        return found

    def settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._wait(f"topic {topic}", self._client.describe_configs, [resource])[resource]
        return {name: one.value for name, one in found.items() if one.source == OWN}

    def create(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        new = NewTopic(topic, partitions, replication, config=dict(settings))
        self._wait(f"topic {topic}", self._client.create_topics, [new])

    def delete(self, topic: str) -> None:
        self._wait(f"topic {topic}", self._client.delete_topics, [topic])

    def truncate(self, positions: Positions) -> None:
        self._wait("delete records", self._client.delete_records, listed(positions))

    def offsets(self, moments: Mapping[Partition, int]) -> dict[Partition, int]:
        named = {EARLIEST: OffsetSpec.earliest, LATEST: OffsetSpec.latest}
        asked = {
            TopicPartition(*partition): named[moment]()
            if moment in named
            else OffsetSpec.for_timestamp(moment)
            for partition, moment in moments.items()
        }
        found = self._wait("offsets", self._client.list_offsets, asked, isolation_level=self._isolation)
        return {Partition(at.topic, at.partition): result.offset for at, result in found.items()}

    def groups(self) -> list[str]:
        listing = self._call(
            "groups", lambda: self._client.list_consumer_groups(request_timeout=FIRST).result()
        )
        for error in listing.errors:
            # An exception, or what is inside of one.
            raise translate(error.args[0] if isinstance(error, KafkaException) else error, "groups")
        return [group.group_id for group in listing.valid]

    def members(self, group: str) -> dict[str, frozenset[Partition]]:
        found = self._wait(f"group {group}", self._client.describe_consumer_groups, [group])[group]
        # While partitions change hands nobody can say whose they are.
        settled = found.state is ConsumerGroupState.STABLE
        return {
            member.member_id: _assigned(member.assignment.topic_partitions if settled else ())
            for member in found.members
        }

    def positions(self, group: str) -> dict[Partition, int]:
        """Ask as a consumer that never joins.

        Its ListConsumerGroupOffsets crashes the process when the coordinator has just moved:
        librdkafka 2.16 then looks for the group of a handle that has none.
        """
        seen = self._call("topics", lambda: self._client.list_topics(timeout=FIRST)).topics.values()
        asked = [TopicPartition(topic.topic, number) for topic in seen for number in topic.partitions]
        own = {"group.id": group, "enable.auto.commit": False}
        consumer = made(confluent_kafka.Consumer, self._config | own, self._link)
        try:
            ask = functools.partial(consumer.committed, asked, TIMEOUT)
            return at_positions(self._call(f"group {group}", ask)) if asked else {}
        finally:
            consumer.close()

    def move(self, group: str, positions: Positions) -> None:
        asked = [ConsumerGroupTopicPartitions(group, listed(positions))]
        found = self._wait(f"group {group}", self._client.alter_consumer_group_offsets, asked)[group]
        for at in found.topic_partitions:
            if at.error is not None:
                raise translate(at.error, f"group {group}")

    def close(self) -> None:
        """Do nothing: librdkafka's handle goes with the last reference to it."""

    def _wait(
        self, what: str, order: Callable[..., dict[Any, Any]], *args: Any, **kwargs: Any
    ) -> dict[Any, Any]:
        def call() -> dict[Any, Any]:
            futures = order(*args, request_timeout=TIMEOUT, **kwargs)
            return {name: future.result() for name, future in futures.items()}

        answers: dict[Any, Any] = self._call(what, call)
        return answers

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaException as error:
            raised = translate(error.args[0], what)
            self._client.poll(0)  # serves error_cb, which tells why
            if raised.retriable:
                unheard = error.args[0].code() in UNHEARD
                if unheard:
                    # The next call has a new one, as this one may have forgotten its brokers for ever;
                    # or has this one, when a file that a new one needs has gone since the start.
                    with contextlib.suppress(ConfigurationError):
                        self._client = made(AdminClient, self._config, self._link)
                raised = self._link.reason() or (diagnosis.unreached(self._config) if unheard else raised)
            raise raised from None
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{what}: {error}") from None


def _found(future: "Future[Any]") -> bool:
    error = future.exception()
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    return not isinstance(error, KafkaException) or error.args[0].code() != missing


def _assigned(listed: Iterable[TopicPartition]) -> frozenset[Partition]:
    return frozenset(Partition(at.topic, at.partition) for at in listed)
