"""Administration with kafka-python."""

import functools
from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer import IsolationLevel

from notifier_kafka.contract.driver import Partition, Positions
from notifier_kafka.errors import ConfigurationError

from ... import errors
from ..protocol import Properties, Replicas
from .connection import REQUEST_TIMEOUT_MS, connect, spell_positions
from .errors import attempt, translate

TIMEOUT_MS = REQUEST_TIMEOUT_MS
TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"


class Admin:
    """One connection for all calls; the library's own thread uses it."""

    def __init__(self, given: Properties) -> None:
        self._client = connect(KafkaAdminClient, given, request_timeout_ms=TIMEOUT_MS)

    def topics(self) -> list[str]:
        return list(attempt("topics", self._client.list_topics))

    def partitions(self, topic: str) -> list[Replicas]:
        what = f"topic {topic}"
        (found,) = attempt(what, lambda: self._client.describe_topics([topic]))
        _raise_for(what, found)
        return [
            Replicas(
                Partition(topic, part["partition_index"]),
                part["leader_id"],
                tuple(part["replica_nodes"]),
                tuple(part["isr_nodes"]),
            )
            for part in found["partitions"]
        ]

    def settings(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        ask = functools.partial(self._client.describe_configs, [resource], config_filter="all")
        found = attempt(f"topic {topic}", ask)["topic"][topic]
        if not found:  # a topic has settings; the library does not tell that they are denied
            raise translate(kafka_errors.TopicAuthorizationFailedError(), f"topic {topic}")
        return {
            name: str(one["value"]) for name, one in found.items() if one["config_source"] == TOPIC_CONFIG
        }

    def create(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        new = {
            topic: {
                "num_partitions": partitions,
                "replication_factor": replication,
                "configs": dict(settings),
            }
        }
        self._raise_for_topics(
            f"topic {topic}", lambda: self._client.create_topics(new, TIMEOUT_MS, raise_errors=False)
        )

    def delete(self, topic: str) -> None:
        self._raise_for_topics(
            f"topic {topic}",
            lambda: self._client.delete_topics([topic], TIMEOUT_MS, raise_errors=False),
        )

    def truncate(self, positions: Positions) -> None:
        ends = {TopicPartition(*partition): offset for partition, offset in positions.items()}
        attempt("delete records", lambda: self._client.delete_records(ends, TIMEOUT_MS))

    def offsets(self, moments: Mapping[Partition, int]) -> dict[Partition, int]:
        asked = {TopicPartition(*partition): moment for partition, moment in moments.items()}
        found = attempt(
            "offsets",
            lambda: self._client.list_partition_offsets(asked, IsolationLevel.READ_COMMITTED, TIMEOUT_MS),
        )
        return {Partition(*at): result.offset for at, result in found.items()}

    def groups(self) -> list[str]:
        return [group["group_id"] for group in attempt("groups", self._client.list_groups)]

    def members(self, group: str) -> dict[str, frozenset[Partition]]:
        found = attempt(f"group {group}", lambda: self._client.describe_groups([group]))[group]
        if not found["members"]:
            self._refuse_unknown_protocol(group)
        # During a rebalance nobody knows whose the partitions are.
        settled = found["group_state"] == "Stable"
        return {
            member["member_id"]: _assigned(member["member_assignment"]) if settled else frozenset()
            for member in found["members"]
        }

    def _refuse_unknown_protocol(self, group: str) -> None:
        """Raise for a group of KIP-848: the library shows it without its members."""
        listed = attempt("groups", self._client.list_groups)
        state, kind = next(
            ((one["group_state"], one["group_type"]) for one in listed if one["group_id"] == group), ("", "")
        )
        if kind.lower() == "consumer" and state != "Empty":
            raise ConfigurationError(
                f"group {group} has members by group_protocol = consumer, which kafka-python cannot show: "
                "install notifier-kafka[confluent] and set [drivers_kafka] client = confluent-kafka"
            )

    def positions(self, group: str) -> dict[Partition, int]:
        found = attempt(f"group {group}", lambda: self._client.list_group_offsets([group]))
        return {Partition(*at): one.offset for at, one in found.get(group, {}).items() if one.offset >= 0}

    def move(self, group: str, positions: Positions) -> None:
        outcomes = attempt(
            f"group {group}", lambda: self._client.alter_group_offsets(group, spell_positions(positions))
        )
        for error in outcomes.values():
            if error is not kafka_errors.NoError:
                raise translate(error(), f"group {group}")

    def close(self) -> None:
        attempt("close", self._client.close)

    def _raise_for_topics(self, what: str, call: Any) -> None:
        for topic in attempt(what, call)["topics"]:
            _raise_for(what, topic)


def _raise_for(what: str, answer: Mapping[str, Any]) -> None:
    if answer["error_code"]:
        raise errors.broker_error(answer["error_code"], what, answer.get("error_message") or "")


def _assigned(assignment: Any) -> frozenset[Partition]:
    if not assignment:
        return frozenset()
    listed = assignment["assigned_partitions"]
    return frozenset(Partition(one["topic"], number) for one in listed for number in one["partitions"])
