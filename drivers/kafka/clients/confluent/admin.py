"""Administration with confluent-kafka."""

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
from .connection import ConnectionState, at_positions, create, listed, translate

NO_ANSWER = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)  # noqa: SLF001 - their public names
TIMEOUT_SECONDS = properties.REQUEST_TIMEOUT_SECONDS
# For the first request of most commands: it leaves time to look for the reason of a failure.
FIRST_TIMEOUT_SECONDS = TIMEOUT_SECONDS - diagnosis.STEP_TIMEOUT_SECONDS
TOPIC_CONFIG = ConfigSource.DYNAMIC_TOPIC_CONFIG.value


class Admin:
    """Every call waits for its futures, at most for the request timeout."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._state = ConnectionState(config)
        self._config = dict(config)
        self._client = create(AdminClient, config, self._state)
        self._isolation = IsolationLevel.READ_COMMITTED

    def topics(self) -> list[str]:
        return list(
            self._call("topics", lambda: self._client.list_topics(timeout=FIRST_TIMEOUT_SECONDS)).topics
        )

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

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of those topics that exist."""
        asked = TopicCollection(list(topics))

        def ask() -> dict[str, str]:
            futures = self._client.describe_topics(asked, request_timeout=TIMEOUT_SECONDS)
            return {name: str(future.result().topic_id) for name, future in futures.items() if _found(future)}

        found: dict[str, str] = self._call("topics", ask)
        return found

    def settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._wait(f"topic {topic}", self._client.describe_configs, [resource])[resource]
        return {name: one.value for name, one in found.items() if one.source == TOPIC_CONFIG}

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
            "groups",
            lambda: self._client.list_consumer_groups(request_timeout=FIRST_TIMEOUT_SECONDS).result(),
        )
        for error in listing.errors:
            # An exception, or what is inside of one.
            raise translate(error.args[0] if isinstance(error, KafkaException) else error, "groups")
        return [group.group_id for group in listing.valid]

    def members(self, group: str) -> dict[str, frozenset[Partition]]:
        found = self._wait(f"group {group}", self._client.describe_consumer_groups, [group])[group]
        # During a rebalance nobody knows whose the partitions are.
        settled = found.state is ConsumerGroupState.STABLE
        return {
            member.member_id: _assigned(member.assignment.topic_partitions if settled else ())
            for member in found.members
        }

    def positions(self, group: str) -> dict[Partition, int]:
        """Ask as a consumer that never joins.

        librdkafka's ListConsumerGroupOffsets crashes the process when the coordinator has just moved:
        version 2.16 then looks for the group of a handle that has none.
        """
        seen = self._call(
            "topics", lambda: self._client.list_topics(timeout=FIRST_TIMEOUT_SECONDS)
        ).topics.values()
        asked = [TopicPartition(topic.topic, number) for topic in seen for number in topic.partitions]
        own = {"group.id": group, "enable.auto.commit": False}
        consumer = create(confluent_kafka.Consumer, self._config | own, self._state)
        try:
            ask = functools.partial(consumer.committed, asked, TIMEOUT_SECONDS)
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
        """Do nothing: librdkafka's handle is freed with the last reference to it."""

    def _wait(
        self, what: str, order: Callable[..., dict[Any, Any]], *args: Any, **kwargs: Any
    ) -> dict[Any, Any]:
        def call() -> dict[Any, Any]:
            futures = order(*args, request_timeout=TIMEOUT_SECONDS, **kwargs)
            return {name: future.result() for name, future in futures.items()}

        answers: dict[Any, Any] = self._call(what, call)
        return answers

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaException as error:
            raised = translate(error.args[0], what)
            self._client.poll(0)  # calls error_cb, which gets the reason
            if raised.retriable:
                unanswered = error.args[0].code() in NO_ANSWER
                if unanswered:
                    # The next call uses a new client: this one may have lost its brokers for good. It uses
                    # this one when a new one cannot be made, because a TLS file was removed since the start.
                    with contextlib.suppress(ConfigurationError):
                        self._client = create(AdminClient, self._config, self._state)
                raised = self._state.reason() or (diagnosis.unreached(self._config) if unanswered else raised)
            raise raised from None
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{what}: {error}") from None


def _found(future: "Future[Any]") -> bool:
    error = future.exception()
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    return not isinstance(error, KafkaException) or error.args[0].code() != missing


def _assigned(listed: Iterable[TopicPartition]) -> frozenset[Partition]:
    return frozenset(Partition(at.topic, at.partition) for at in listed)
