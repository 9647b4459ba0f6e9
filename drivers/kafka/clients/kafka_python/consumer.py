"""Consuming with kafka-python."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from notifier_kafka.contract.driver import Delivery, Partition, Positions
from notifier_kafka.errors import TopicNotFound, TransportUnavailable

from .. import protocol
from .connection import REQUEST_TIMEOUT_MS, connect_consumer, spell_positions
from .errors import attempt, translate
from .patches import bad_batches, topic_metadata
from .patches.bad_batches import call_for_assigned, seek_if_assigned
from .patches.group_join import GroupJoin
from .patches.lost_brokers import is_connected
from .reader import CLOSE_TIMEOUT_MS, BrokerContact, delivery


class Consumer(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of a group."""

    def __init__(
        self, given: Mapping[str, str], topics: Sequence[str], start_offsets: protocol.StartOffsets | None
    ) -> None:
        self.owned: set[Partition] = set()
        self._start_offsets = start_offsets
        self._gained: set[TopicPartition] = set()
        # Held for a moment only: the library's thread must not wait.
        self._lock = threading.Lock()
        self._paused = False
        self._consumer = connect_consumer(given)
        self._group_join = GroupJoin(self._consumer)
        self._contact = BrokerContact(self._consumer, given)
        self._consumer.subscribe(list(topics), listener=self)

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        try:
            return self._poll_and_place(limit, timeout)
        except TopicNotFound as error:
            # It was just created, and not every broker knows it yet.
            raise TransportUnavailable(str(error)) from error

    def _poll_and_place(self, limit: int, timeout: float) -> list[Delivery]:
        deadline = time.monotonic() + timeout
        deliveries = self._poll(limit, timeout)
        if self._gained:
            begin = self._start_gained()
            # What came before the join is of partitions that we kept; where we seek back, it comes again.
            deliveries = [each for each in deliveries if each.partition not in begin]
            deliveries += self._poll(limit, max(0.0, deadline - time.monotonic()))
        if not deliveries:
            self._contact.check()
            self._refuse_denied_topics()
        return deliveries

    def commit(self, positions: Positions) -> None:
        attempt(
            "commit", lambda: self._consumer.commit(spell_positions(positions), timeout_ms=REQUEST_TIMEOUT_MS)
        )

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        found = {p: self._committed(p) for p in partitions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def seek(self, partition: Partition, offset: int) -> None:
        seek_if_assigned(self._consumer, TopicPartition(*partition), offset)

    def topic_ids(self) -> dict[Partition, str]:
        owned = self.owned
        found = topic_metadata.topic_ids(self._consumer, {partition.topic for partition in owned})
        return {partition: found[partition.topic] for partition in owned if partition.topic in found}

    def is_connected(self) -> bool:
        return is_connected(self._consumer)

    def is_dead(self) -> bool:
        return False

    def pause(self) -> None:
        self._paused = True
        call_for_assigned(self._consumer.pause, self._consumer.assignment())

    def resume(self) -> None:
        self._paused = False
        call_for_assigned(self._consumer.resume, self._consumer.assignment() - self._gained)

    def close(self) -> None:
        self.owned = set()
        self._group_join.before_close(CLOSE_TIMEOUT_MS)
        attempt("close", lambda: self._consumer.close(autocommit=False, timeout_ms=CLOSE_TIMEOUT_MS))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Note them. Called on the library's own thread, which must not wait: ``poll`` does the rest."""
        with self._lock:
            self._gained = set(assigned)
            self.owned = {Partition(*partition) for partition in self._gained}
            self._consumer.pause(*self._gained)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.owned = self.owned - {Partition(*partition) for partition in revoked}

    def _refuse_denied_topics(self) -> None:
        """Raise for topics that we have no right to see: the library waits for them silently."""
        if denied := topic_metadata.denied_topics(self._consumer):
            raise translate(kafka_errors.TopicAuthorizationFailedError(denied), "poll")

    def _poll(self, limit: int, timeout: float) -> list[Delivery]:
        timeout_ms = self._group_join.before_poll(round(timeout * 1000))
        found = bad_batches.poll(self._consumer, limit, timeout_ms)
        return [delivery(record) for records in found.values() for record in records]

    def _start_gained(self) -> dict[Partition, int]:
        gained = self._gained
        begin = self._start_offsets([Partition(*p) for p in gained]) if self._start_offsets else {}
        for partition, offset in begin.items():
            self.seek(partition, offset)
        with self._lock:
            if self._gained is gained:
                self._gained = set()
                if not self._paused:
                    call_for_assigned(self._consumer.resume, gained)
            # Else another join ended meanwhile: the next poll starts what that brought.
        return begin

    def _committed(self, partition: Partition) -> int | None:
        found = attempt(
            f"position in {partition}",
            lambda: self._consumer.committed(TopicPartition(*partition), timeout_ms=REQUEST_TIMEOUT_MS),
        )
        return None if found is None else int(found)
