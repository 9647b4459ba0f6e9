"""The client library confluent-kafka (librdkafka); each of its roles has a module beside this one."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException

from notifier_kafka.contract.driver import Limits, OnFailure, Partition
from notifier_kafka.errors import ConfigurationError

from ... import properties
from .. import protocol
from .admin import Admin
from .connection import Log
from .consumer import Consumer
from .publisher import Publisher
from .reader import Reader
from .topic_ids import TopicIdLookup
from .transactor import Transactor

# A broker that hangs keeps its connections. By default librdkafka waits a minute for each answer, also
# to a commit, before it looks for another broker.
DEFAULTS: dict[str, Any] = {"socket.timeout.ms": 15_000}

UNKNOWN_PROPERTY = "No such configuration property"

FOREVER = {"delivery.timeout.ms": "0"}
PUBLISHING: dict[str, Any] = {
    # As Java and kafka-python do: a key gets the same partition whichever client publishes.
    "partitioner": "murmur2_random",
    # The driver creates topics, as its options say.
    "allow.auto.create.topics": False,
    # Topics exist before a record comes, so a missing one was deleted.
    "topic.metadata.propagation.max.ms": 10_000,
}
SPELLINGS = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}


class Confluent:
    """The client library, as the driver knows it."""

    def __init__(self, given: protocol.Properties) -> None:
        self._common = DEFAULTS | _spelled(given)
        self._topic_id_lookup: Callable[[], TopicIdLookup | None] = lambda: None
        extra = {name: value for name, value in given.items() if name not in properties.NAMES}
        if extra:
            _refuse_unknown(extra)

    def publisher(
        self, given: protocol.Properties, on_failure: OnFailure, limits: Limits, restore: protocol.Restore
    ) -> Publisher:
        """Make one. An endless retry is not limited by ``delivery.timeout.ms``, as with kafka-python."""
        bounds = {
            "queue.buffering.max.messages": limits.records,
            "queue.buffering.max.kbytes": max(1, limits.bytes // 1024),
        }
        config = PUBLISHING | bounds | self._common | _spelled(given)
        return Publisher(config | (FOREVER if limits.retry < 0 else {}), on_failure, restore)

    def transactor(self, given: protocol.Properties) -> Transactor:
        return Transactor(PUBLISHING | self._common | _spelled(given))

    def consumer(
        self, given: protocol.Properties, topics: Sequence[str], start_offsets: protocol.StartOffsets | None
    ) -> Consumer:
        # One for all consumers, kept only while there are any.
        topic_id_lookup = self._topic_id_lookup() or TopicIdLookup(self.admin)
        self._topic_id_lookup = weakref.ref(topic_id_lookup)
        return Consumer(self._common | _spelled(given), topics, start_offsets, topic_id_lookup)

    def reader(self, given: protocol.Properties, partition: Partition, offset: int) -> Reader:
        return Reader(self._common | _spelled(given), partition, offset)

    def admin(self) -> Admin:
        return Admin(self._common | {"socket.timeout.ms": round(properties.REQUEST_TIMEOUT_SECONDS * 1000)})


def _spelled(given: protocol.Properties) -> dict[str, Any]:
    return {SPELLINGS.get(name, name): value for name, value in given.items()}


def _refuse_unknown(extra: protocol.Properties) -> None:
    """Ask librdkafka about names that Java does not have. Without servers it connects to nothing."""
    for name, value in extra.items():
        try:
            confluent_kafka.Producer({name: value, "logger": Log()})
        except KafkaException as error:
            text = " ".join(error.args[0].str().split())
            # Its code is the same for a wrong value.
            if text.startswith(UNKNOWN_PROPERTY):
                properties.refuse_unknown([name])
            raise ConfigurationError(f"[drivers_kafka] client_properties: {text}") from None
