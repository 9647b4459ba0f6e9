"""Consuming with confluent-kafka."""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import Delivery, Partition, Positions
from notifier_kafka.errors import CommitRefused, MessagingException, TransportUnavailable

from ... import properties
from .. import protocol
from .connection import (
    SUSPICIOUS_SECONDS,
    CallWithTimeout,
    ConnectionState,
    at_positions,
    attempt,
    create,
    has_lost_brokers,
    listed,
)
from .reader import consume
from .topic_ids import TopicIdLookup, TopicIdPoller

LOG = logging.getLogger(__name__)

LEAVE_TIMEOUT_SECONDS = 2.0  # for our steps before librdkafka's close
CLOSE_TIMEOUT_SECONDS = 15.0  # for librdkafka's close, which takes a fraction of a second
LEAVE_CHECK_SECONDS = 0.005
SESSION_TIMEOUT_MS = 45_000  # librdkafka's default
COMMIT_MARGIN_SECONDS = 20.0  # librdkafka gives up a broker that does not answer after 15
CONNECTED_AFTER_SECONDS = 12.0  # without an error: librdkafka tries to connect every 10 and reports a failure


class Consumer:
    """A member of a group."""

    def __init__(
        self,
        config: dict[str, Any],
        topics: Sequence[str],
        start_offsets: protocol.StartOffsets | None,
        topic_id_lookup: TopicIdLookup,
    ) -> None:
        self.owned: set[Partition] = set()
        self._start_offsets = start_offsets
        self._incremental = config.get("group.protocol") == "consumer"
        self._static = bool(config.get("group.instance.id"))
        self._state = ConnectionState(config)
        self._config = config
        self._topic_ids = TopicIdPoller(topic_id_lookup)
        self._last_delivery_at = time.monotonic()
        self._has_lost_brokers = self._leaving = self._gaining = False
        # Held during the check: a client must not be closed while it is in use.
        self._checking = threading.Lock()
        self._paused = False
        self._commit: CallWithTimeout | None = None
        # librdkafka keeps a commit for a session when no broker takes it.
        self._commit_timeout = (
            float(config.get("session.timeout.ms", SESSION_TIMEOUT_MS)) / 1000 + COMMIT_MARGIN_SECONDS
        )
        self._consumer = create(confluent_kafka.Consumer, config, self._state)
        self._consumer.subscribe(list(topics), on_assign=self._gain, on_revoke=self._lose, on_lost=self._lose)

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deliveries, _ = consume(self._consumer, limit, timeout, self._state)
        if deliveries:
            self._last_delivery_at = time.monotonic()
        return deliveries

    def is_dead(self) -> bool:
        now = time.monotonic()
        if now - self._last_delivery_at >= SUSPICIOUS_SECONDS:
            self._last_delivery_at = now
            threading.Thread(target=self._check_brokers, name="notifier-kafka-check", daemon=True).start()
        return self._has_lost_brokers or self._is_stuck

    @property
    def _is_stuck(self) -> bool:
        return self._commit is not None and not self._commit.done

    def _check_brokers(self) -> None:
        with self._checking:
            self._has_lost_brokers = not self._leaving and has_lost_brokers(self._consumer, self._config)

    def commit(self, positions: Positions) -> None:
        what = f"commit of {len(positions)} positions"
        if not self._consumer.memberid():
            raise CommitRefused(f"{what}: no longer a member of the group")
        where = listed(positions)

        def commit() -> None:
            self._consumer.commit(offsets=where, asynchronous=False)

        if self._gaining:
            # Within a callback librdkafka answers only the thread that it called.
            attempt(what, commit)
        else:
            self._commit = CallWithTimeout(what, commit)
            self._commit.wait(self._commit_timeout)

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        asked = [TopicPartition(*partition) for partition in partitions]
        timeout = properties.REQUEST_TIMEOUT_SECONDS
        return at_positions(attempt("positions", lambda: self._consumer.committed(asked, timeout)))

    def seek(self, partition: Partition, offset: int) -> None:
        attempt(f"seek in {partition}", lambda: self._consumer.seek(TopicPartition(*partition, offset)))

    def topic_ids(self) -> dict[Partition, str]:
        return self._topic_ids.found(self.owned)

    def is_connected(self) -> bool:
        # A request would tell at once, but would hold up the polls that keep the membership.
        return time.monotonic() - self._state.told_at > CONNECTED_AFTER_SECONDS

    def pause(self) -> None:
        self._paused = True
        self._consumer.pause([TopicPartition(*partition) for partition in self.owned])

    def resume(self) -> None:
        self._paused = False
        self._consumer.resume([TopicPartition(*partition) for partition in self.owned])

    def close(self) -> None:
        """Leave the group, one step after the other.

        When librdkafka is closed before its first join is answered, a member stays in the group, which
        waits for it; when it is closed before a rebalance is served, it may wait for ever (its issue 4884).
        A static member does not leave, so that it gets its partitions again after a restart.
        """
        self.owned.clear()
        self._start_offsets = None
        self._leaving = True
        consumer = self._consumer
        deadline = time.monotonic() + LEAVE_TIMEOUT_SECONDS
        while not consumer.memberid() and not self._state.down and time.monotonic() < deadline:
            time.sleep(LEAVE_CHECK_SECONDS)
        gone = self._static
        if not gone:
            consumer.unsubscribe()
        while not gone and time.monotonic() < deadline:
            with contextlib.suppress(MessagingException):
                attempt("leave", lambda: consumer.poll(LEAVE_CHECK_SECONDS))
            # With the protocol of KIP-848 the id is a member's own and stays.
            gone = not (consumer.assignment() if self._incremental else consumer.memberid())
        if self._is_stuck:
            # It is in use for ever, and must not be closed while a call waits in it.
            after_fork.never_free(self)
            return
        with self._checking:
            closing = CallWithTimeout("close", consumer.close)
        try:
            closing.wait(CLOSE_TIMEOUT_SECONDS)
        except TransportUnavailable:
            # It has no timeout of its own, and in one soak test a listener never ended.
            LOG.warning("librdkafka does not close: a member stays in its group until its session times out")
            after_fork.never_free(self)

    def _gain(self, consumer: Any, gained: list[TopicPartition]) -> None:
        partitions = [Partition(at.topic, at.partition) for at in gained]
        self._gaining = True
        try:
            begin = self._start_offsets(partitions) if self._start_offsets else {}
        finally:
            self._gaining = False
        for at, partition in zip(gained, partitions, strict=True):
            at.offset = begin.get(partition, at.offset)
        (consumer.incremental_assign if self._incremental else consumer.assign)(gained)
        self.owned.update(partitions)
        # Always one of the two: librdkafka remembers the pause of a partition that was lost and regained.
        (self._consumer.pause if self._paused else self._consumer.resume)(gained)

    def _lose(self, _consumer: Any, lost: list[TopicPartition]) -> None:
        self.owned.difference_update(Partition(at.topic, at.partition) for at in lost)
