"""confluent-kafka behind the seam: consuming."""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from notifier_kafka.contract.driver import Delivery, Partition, Positions
from notifier_kafka.errors import CommitRefused, MessagingException, TransportUnavailable

from ... import properties
from ...publishing.topic_creation import abandon
from .. import protocol
from .connection import SUSPICIOUS, Call, Link, at_positions, attempt, forgotten, listed, made
from .reader import consume
from .topic_ids import Identities, Topics

LOG = logging.getLogger(__name__)

LEAVING = 2.0  # seconds at most for the steps before the library's own
ENDING = 15.0  # seconds for those, which take a fraction of one
LOOK = 0.005
SESSION = 45_000  # librdkafka's own
SPARE = 20.0  # seconds; a broker that does not answer is given up after 15
QUIET = 12.0  # seconds; librdkafka tries to connect every ten, and tells when that was in vain


class Consumer:
    """A member of a group."""

    def __init__(
        self,
        config: dict[str, Any],
        topics: Sequence[str],
        place: protocol.Place | None,
        identities: Identities,
    ) -> None:
        self.owned: set[Partition] = set()
        self._place = place
        self._incremental = config.get("group.protocol") == "consumer"
        self._static = bool(config.get("group.instance.id"))
        self._link = Link(config)
        self._config = config
        self._topics = Topics(identities)
        self._came = time.monotonic()
        self._forgotten = self._leaving = self._gaining = False
        # A client must not be closed while it is asked.
        self._looking = threading.Lock()
        self._held = False
        self._commit: Call | None = None
        # librdkafka keeps a commit for a session when no broker takes it.
        self._patience = float(config.get("session.timeout.ms", SESSION)) / 1000 + SPARE
        self._consumer = made(confluent_kafka.Consumer, config, self._link)
        self._consumer.subscribe(list(topics), on_assign=self._gain, on_revoke=self._lose, on_lost=self._lose)

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        deliveries, _ = consume(self._consumer, limit, timeout, self._link)
        if deliveries:
            self._came = time.monotonic()
        return deliveries

    def forgotten(self) -> bool:
        now = time.monotonic()
        if now - self._came >= SUSPICIOUS:
            self._came = now
            threading.Thread(target=self._look, name="notifier-kafka-look", daemon=True).start()
        return self._forgotten or self._stuck

    @property
    def _stuck(self) -> bool:
        return self._commit is not None and not self._commit.done

    def _look(self) -> None:
        with self._looking:
            self._forgotten = not self._leaving and forgotten(self._consumer, self._config)

    def commit(self, positions: Positions) -> None:
        what = f"commit of {len(positions)} positions"
        if not self._consumer.memberid():
            raise CommitRefused(f"{what}: no longer a member of the group")
        where = listed(positions)

        def commit() -> None:
            self._consumer.commit(offsets=where, asynchronous=False)

        if self._gaining:
            # Within its callback librdkafka answers nobody but the thread of that.
            attempt(what, commit)
        else:
            self._commit = Call(what, commit)
            self._commit.wait(self._patience)

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        asked = [TopicPartition(*partition) for partition in partitions]
        timeout = properties.REQUEST_TIMEOUT
        return at_positions(attempt("positions", lambda: self._consumer.committed(asked, timeout)))

    def seek(self, partition: Partition, offset: int) -> None:
        attempt(f"seek in {partition}", lambda: self._consumer.seek(TopicPartition(*partition, offset)))

    def made_again(self) -> set[Partition]:
        return self._topics.made_again(self.owned)

    def reaches(self) -> bool:
        # Asking the brokers would tell at once, and cost the membership time.
        return time.monotonic() - self._link.told > QUIET

    def hold(self) -> None:
        self._held = True
        self._consumer.pause([TopicPartition(*partition) for partition in self.owned])

    def proceed(self) -> None:
        self._held = False
        self._consumer.resume([TopicPartition(*partition) for partition in self.owned])

    def close(self) -> None:
        """Leave the group, one step after the other.

        Closed before its first join is answered, librdkafka leaves a member behind for which the
        group waits; closed before a rebalance is served, it may wait for ever (its issue 4884).
        A static member does not leave, so that it has its partitions again after a restart.
        """
        self.owned.clear()
        self._place = None
        self._leaving = True
        consumer = self._consumer
        deadline = time.monotonic() + LEAVING
        while not consumer.memberid() and not self._link.down and time.monotonic() < deadline:
            time.sleep(LOOK)
        gone = self._static
        if not gone:
            consumer.unsubscribe()
        while not gone and time.monotonic() < deadline:
            with contextlib.suppress(MessagingException):
                attempt("leave", lambda: consumer.poll(LOOK))
            # With the protocol of KIP-848 the id is a member's own and stays.
            gone = not (consumer.assignment() if self._incremental else consumer.memberid())
        if self._stuck:
            # It is in use for ever, and must not be closed under whoever waits for it.
            abandon(self)
            return
        with self._looking:
            closing = Call("close", consumer.close)
        try:
            closing.wait(ENDING)
        except TransportUnavailable:
            # It has no bound of its own, and in one soak a listener never ended.
            LOG.warning("A member is left to its session: librdkafka does not close it")
            abandon(self)

    def _gain(self, consumer: Any, gained: list[TopicPartition]) -> None:
        partitions = [Partition(at.topic, at.partition) for at in gained]
        self._gaining = True
        try:
            begin = self._place(partitions) if self._place else {}
        finally:
            self._gaining = False
        for at, partition in zip(gained, partitions, strict=True):
            at.offset = begin.get(partition, at.offset)
        (consumer.incremental_assign if self._incremental else consumer.assign)(gained)
        self.owned.update(partitions)
        # Said either way: librdkafka remembers a pause of a partition that went and came back.
        (self._consumer.pause if self._held else self._consumer.resume)(gained)

    def _lose(self, _consumer: Any, lost: list[TopicPartition]) -> None:
        self.owned.difference_update(Partition(at.topic, at.partition) for at in lost)
