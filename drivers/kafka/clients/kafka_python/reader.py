"""Reading with kafka-python without a group, and what a consumer shares with that."""

import time
from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition

from notifier_kafka.contract.driver import Delivery, Partition, Record

from ... import diagnosis
from .connection import REQUEST_TIMEOUT_MS, connect_consumer
from .errors import attempt
from .patches import bad_batches
from .patches.lost_brokers import is_connected

CONNECTION_CHECK_SECONDS = 1.0
CLOSE_TIMEOUT_MS = 2_000
POLL_TIMEOUT_MS = 20


class BrokerContact:
    """Tells when a consumer has lost its brokers: its polls then return nothing and do not raise."""

    def __init__(self, consumer: Any, given: Mapping[str, str]) -> None:
        self._consumer = consumer
        self._given = given
        self._checked_at = time.monotonic()
        self._lost = False

    def check(self) -> None:
        """Raise when there was no connection at two checks in a row."""
        if time.monotonic() - self._checked_at < CONNECTION_CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        lost = not is_connected(self._consumer)
        still_lost, self._lost = lost and self._lost, lost
        if still_lost:
            raise diagnosis.unreached(self._given)


class Reader:
    """Reads one partition."""

    def __init__(self, given: Mapping[str, str], partition: Partition, offset: int) -> None:
        self._at = TopicPartition(*partition)
        self._consumer = connect_consumer(given, enable_auto_commit=False, allow_auto_create_topics=False)
        self._contact = BrokerContact(self._consumer, given)
        self._consumer.assign([self._at])
        self._consumer.seek(self._at, offset)
        self._position = offset

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deadline = time.monotonic() + timeout
        before, deliveries = self._position, self._poll(limit)
        # With a longer timeout its poll would wait although the marker of a transaction came.
        while not deliveries and self._position == before and time.monotonic() < deadline:
            deliveries = self._poll(limit)
        if not deliveries:
            self._contact.check()
        return deliveries

    def position(self) -> int:
        return self._position

    def _poll(self, limit: int) -> list[Delivery]:
        found = bad_batches.poll(self._consumer, limit, POLL_TIMEOUT_MS)
        deliveries = [delivery(record) for record in found.get(self._at, ())]
        if deliveries:
            self._position = deliveries[-1].offset + 1
        else:
            # Behind a gap its position is past the last record; where no record follows, only this tells.
            position = attempt(
                "read", lambda: self._consumer.position(self._at, timeout_ms=REQUEST_TIMEOUT_MS)
            )
            self._position = max(self._position, position or 0)
        return deliveries

    def close(self) -> None:
        attempt("close", lambda: self._consumer.close(autocommit=False, timeout_ms=CLOSE_TIMEOUT_MS))


def delivery(found: Any) -> Delivery:
    """Make a delivery of a record."""
    headers = tuple((name, content or b"") for name, content in found.headers)
    record = Record(found.topic, found.value, found.key, headers)
    return Delivery(record, Partition(found.topic, found.partition), found.offset, found.timestamp / 1000)
