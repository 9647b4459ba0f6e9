"""kafka-python behind the seam: reading without a group, and what a consumer shares with that."""

import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from notifier_kafka.contract.driver import Delivery, Partition, Record

from ... import diagnosis
from .connection import REQUEST_MS, connect, connected
from .errors import attempt
from .patches.bad_batches import polled

LOOK = 1.0  # seconds between looks whether there is still a connection
CLOSE_MS = 2_000
SHORT_MS = 20


class Line:
    """Tells when a consumer has lost its brokers: its polls then come back empty, and no more."""

    def __init__(self, consumer: Any, given: Mapping[str, str]) -> None:
        self._consumer = consumer
        self._given = given
        self._looked = time.monotonic()
        self._gone = False

    def look(self) -> None:
        """Raise when there was no connection at two looks in a row."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        gone = not connected(self._consumer)
        again, self._gone = gone and self._gone, gone
        if again:
            raise diagnosis.unreached(self._given)


class Reader:
    """Reads one partition."""

    def __init__(self, given: Mapping[str, str], partition: Partition, offset: int) -> None:
        self._at = TopicPartition(*partition)
        self._consumer = connect(
            KafkaConsumer, given, enable_auto_commit=False, allow_auto_create_topics=False
        )
        self._line = Line(self._consumer, given)
        self._consumer.assign([self._at])
        self._consumer.seek(self._at, offset)
        self._position = offset

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deadline = time.monotonic() + timeout
        before, deliveries = self._position, self._poll(limit)
        # Its poll would sit out the time when all that came was the mark of a transaction.
        while not deliveries and self._position == before and time.monotonic() < deadline:
            deliveries = self._poll(limit)
        if not deliveries:
            self._line.look()
        return deliveries

    def position(self) -> int:
        return self._position

    def _poll(self, limit: int) -> list[Delivery]:
        found = polled(self._consumer, limit, SHORT_MS)
        deliveries = [delivery(record) for record in found.get(self._at, ())]
        if deliveries:
            self._position = deliveries[-1].offset + 1
        else:
            # Behind a gap its position is past the last record, which for an empty rest is all there is.
            position = attempt("read", lambda: self._consumer.position(self._at, timeout_ms=REQUEST_MS))
            self._position = max(self._position, position or 0)
        return deliveries

    def close(self) -> None:
        attempt("close", lambda: self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS))


def delivery(found: Any) -> Delivery:
    """Make a delivery of a record."""
    headers = tuple((name, content or b"") for name, content in found.headers)
    record = Record(found.topic, found.value, found.key, headers)
    return Delivery(record, Partition(found.topic, found.partition), found.offset, found.timestamp / 1000)
