"""The bare client libraries, in loops as a program without this package has them.

They have the properties that the driver sets by default: acks=all, idempotence, the same linger and
batches. So the code above the client is compared, and not its tuning.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from benchmarks import child_protocol
from benchmarks.child_protocol import BATCH_RECORDS, Message

TIMEOUT_SECONDS = child_protocol.TIMEOUT_SECONDS


class InvalidMeasurement(RuntimeError):
    """Something was lost or did not arrive, so the figures would mean nothing."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the measurement is invalid: {why}")


class Bare(Protocol):
    """One producer or one consumer."""

    def __init__(self, bootstrap: str) -> None: ...

    def publish_to(self, topic: str) -> None:
        """Connect, by publishing one record."""

    def publish(self, topic: str, make: Callable[[], Message], count: int) -> None:
        """Publish until all is acknowledged."""

    def join(self, topic: str, group: str) -> None:
        """Join a group, and wait for its first records."""

    def consume(self, count: int, decode: Callable[[bytes], object]) -> None:
        """Decode ``count`` records, the first ones included; commit between batches.

        The measurement ends with the last record, for all contestants: most do not report their last
        commit.
        """

    def close(self) -> None: ...


class Confluent:
    """confluent-kafka."""

    def __init__(self, bootstrap: str) -> None:
        self._servers = {"bootstrap.servers": bootstrap}
        self._failed: list[Any] = []
        self._producer: Any = None
        self._consumer: Any = None
        self._first: Sequence[Any] = ()

    def publish_to(self, topic: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            self._servers
            | {
                "acks": "all",
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "linger.ms": child_protocol.LINGER_MS,
                "batch.size": child_protocol.BATCH_BYTES,
                "partitioner": "murmur2_random",
                # A callback for each success would be expensive, and nothing counts them.
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _message: self._failed.append(error),
            }
        )
        self._producer.produce(topic, b"warm up")
        self._flush()

    def publish(self, topic: str, make: Callable[[], Message], count: int) -> None:
        produce = self._producer.produce
        for _ in range(count):
            value, headers = make()
            while True:
                try:
                    produce(topic, value, headers=headers)
                except BufferError:
                    self._producer.poll(0.01)
                else:
                    break
        self._flush()

    def join(self, topic: str, group: str) -> None:
        from confluent_kafka import Consumer

        own = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer(self._servers | own)
        self._consumer.subscribe([topic])
        self._first = [self._consumer.poll(TIMEOUT_SECONDS)]
        if self._first[0] is None:
            raise InvalidMeasurement("nothing arrived")

    def consume(self, count: int, decode: Callable[[bytes], object]) -> None:
        found, left = self._first, count
        while True:
            for message in found:
                if message.error():
                    raise InvalidMeasurement(message.error().str())
                decode(message.value())
            left -= len(found)
            if left <= 0:
                return
            self._consumer.commit(asynchronous=False)
            found = self._consumer.consume(min(left, BATCH_RECORDS), TIMEOUT_SECONDS)
            if not found:
                raise InvalidMeasurement(f"{left} did not arrive")

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _flush(self) -> None:
        unsent = self._producer.flush(TIMEOUT_SECONDS)
        if unsent or self._failed:
            raise InvalidMeasurement(f"{unsent} unsent, {len(self._failed)} failed")


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: Any = None
        self._first: Sequence[Any] = ()

    def publish_to(self, topic: str) -> None:
        from kafka import KafkaProducer

        self._client = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            enable_idempotence=True,
            max_in_flight_requests_per_connection=5,
            linger_ms=child_protocol.LINGER_MS,
            batch_size=child_protocol.BATCH_BYTES,
        )
        self._client.send(topic, b"warm up").get(TIMEOUT_SECONDS)

    def publish(self, topic: str, make: Callable[[], Message], count: int) -> None:
        send, sent = self._client.send, []
        for _ in range(count):
            value, headers = make()
            sent.append(send(topic, value, headers=headers))
        self._client.flush(TIMEOUT_SECONDS)
        failed = sum(not future.succeeded() for future in sent)
        if failed:
            raise InvalidMeasurement(f"{failed} failed or unsent")

    def join(self, topic: str, group: str) -> None:
        from kafka import KafkaConsumer

        self._client = KafkaConsumer(
            topic,
            bootstrap_servers=self._bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        self._first = self._poll(1)

    def consume(self, count: int, decode: Callable[[bytes], object]) -> None:
        found, left = self._first, count
        while True:
            for message in found:
                decode(message.value)
            left -= len(found)
            if left <= 0:
                return
            self._client.commit()
            found = self._poll(min(left, BATCH_RECORDS))
            if not found:
                raise InvalidMeasurement(f"{left} did not arrive")

    def close(self) -> None:
        self._client.close()

    def _poll(self, limit: int) -> list[Any]:
        polled = self._client.poll(TIMEOUT_SECONDS * 1000, max_records=limit)
        return [message for messages in polled.values() for message in messages]


CLIENTS: dict[str, type[Bare]] = {"confluent-kafka": Confluent, "kafka-python": KafkaPython}
