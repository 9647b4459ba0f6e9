"""kafka-python behind the seam: consuming."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from notifier_kafka.contract.driver import Delivery, Partition, Positions
from notifier_kafka.errors import TopicNotFound, TransportUnavailable

from .. import protocol
from .connection import REQUEST_MS, connect, connected, told
from .errors import attempt, translate
from .patches.bad_batches import each_assigned, go_to, polled
from .patches.group_join import Joins
from .reader import CLOSE_MS, Line, delivery


class Consumer(ConsumerRebalanceListener):  # type: ignore[misc]
    """A member of a group."""

    def __init__(self, given: Mapping[str, str], topics: Sequence[str], place: protocol.Place | None) -> None:
        self.owned: set[Partition] = set()
        self._place = place
        self._gained: set[TopicPartition] = set()
        # For a moment only: the library's thread may not wait.
        self._lock = threading.Lock()
        self._ids: dict[Partition, Any] = {}
        self._held = False
        self._consumer = connect(KafkaConsumer, given)
        self._joins = Joins(self._consumer._coordinator)  # noqa: SLF001
        self._line = Line(self._consumer, given)
        self._consumer.subscribe(list(topics), listener=self)

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        try:
            return self._polled(limit, timeout)
        except TopicNotFound as error:
            # One that was just made, of which not every broker has heard.
            raise TransportUnavailable(str(error)) from error

    def _polled(self, limit: int, timeout: float) -> list[Delivery]:
        deadline = time.monotonic() + timeout
        deliveries = self._poll(limit, timeout)
        if self._gained:
            begin = self._begin()
            # What came before the join is of partitions that stayed; it comes again where we go back.
            deliveries = [each for each in deliveries if each.partition not in begin]
            deliveries += self._poll(limit, max(0.0, deadline - time.monotonic()))
        if not deliveries:
            self._line.look()
            self._look_for_refusals()
        return deliveries

    def commit(self, positions: Positions) -> None:
        attempt("commit", lambda: self._consumer.commit(told(positions), timeout_ms=REQUEST_MS))

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        found = {p: self._committed(p) for p in partitions}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def seek(self, partition: Partition, offset: int) -> None:
        go_to(self._consumer, TopicPartition(*partition), offset)

    def made_again(self) -> set[Partition]:
        """Compare with the topics that partitions had when they were last ours."""
        again = set()
        for partition in self.owned:
            now = self._consumer._client.cluster.topic_id(partition.topic)  # noqa: SLF001
            # None, or all zero, while there is no such topic.
            if now and now.int:
                if self._ids.get(partition, now) != now:
                    again.add(partition)
                self._ids[partition] = now
        return again

    def reaches(self) -> bool:
        return connected(self._consumer)

    def forgotten(self) -> bool:
        return False

    def hold(self) -> None:
        self._held = True
        each_assigned(self._consumer.pause, self._consumer.assignment())

    def proceed(self) -> None:
        self._held = False
        each_assigned(self._consumer.resume, self._consumer.assignment() - self._gained)

    def close(self) -> None:
        self.owned = set()
        self._joins.before_close(CLOSE_MS)
        attempt("close", lambda: self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called on the library's own thread, which must not wait: the rest is done in ``poll``."""
        with self._lock:
            self._gained = set(assigned)
            self.owned = {Partition(*partition) for partition in self._gained}
            self._consumer.pause(*self._gained)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.owned = self.owned - {Partition(*partition) for partition in revoked}

    def _look_for_refusals(self) -> None:
        """Raise for topics that we may not even see, which the library waits for in silence."""
        denied = self._consumer._client.cluster.unauthorized_topics  # noqa: SLF001
        if denied:
            raise translate(kafka_errors.TopicAuthorizationFailedError(denied), "poll")

    def _poll(self, limit: int, timeout: float) -> list[Delivery]:
        timeout_ms = self._joins.before_poll(round(timeout * 1000))
        found = polled(self._consumer, limit, timeout_ms)
        return [delivery(record) for records in found.values() for record in records]

    def _begin(self) -> dict[Partition, int]:
        gained = self._gained
        begin = self._place([Partition(*p) for p in gained]) if self._place else {}
        for partition, offset in begin.items():
            self.seek(partition, offset)
        with self._lock:
            if self._gained is gained:
                self._gained = set()
                if not self._held:
                    each_assigned(self._consumer.resume, gained)
            # Else another join came meanwhile: the next poll begins what that brought.
        return begin

    def _committed(self, partition: Partition) -> int | None:
        found = attempt(
            f"position in {partition}",
            lambda: self._consumer.committed(TopicPartition(*partition), timeout_ms=REQUEST_MS),
        )
        return None if found is None else int(found)
