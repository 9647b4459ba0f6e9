"""Listening, whatever the client library: start positions, commits, membership.

Two promises need work that the libraries do not do:

* Where a group starts is fixed when its first member joins, and committed for the partitions that have
  no position. If the next owner asked for "latest" again, it would skip what the first one was given
  and did not finish.
* A member may work on the records of one poll for longer than Kafka's poll interval. A thread then polls
  in its place, with all partitions paused: so the group neither removes the member nor waits for it. A
  commit for a partition that moved to another member meanwhile is refused.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from notifier_kafka.contract.driver import Delivery, Partition, Positions, Start
from notifier_kafka.errors import CommitRefused, MessagingException, TopicNotFound, TransportUnavailable

from .. import naming
from ..clients import protocol
from .gaps import GapDetector
from .repeated_outage import RepeatedOutage
from .topic_ids import TopicIds

LOG = logging.getLogger(__name__)

CLOSE_CHECK_SECONDS = 0.2  # a waiting poll checks so often whether the subscription was closed

Join = Callable[[str, protocol.StartOffsets | None], protocol.Consumer]
"""Connects a consumer of a group. Blocks."""

Offsets = Callable[[float | None, Sequence[Partition]], dict[Partition, int]]
"""Finds the offsets of a moment, None being now; of all partitions if none are named. Blocks."""


class KafkaSubscription:
    """A ``Subscription``. A thread that uses the consumer holds the lock."""

    def __init__(
        self, join: Join, offsets: Offsets, group: str | None, start: Start, poll_interval: float
    ) -> None:
        self._join = join
        self._offsets = offsets
        self._group = group or naming.private()
        self._private = group is None
        self._start = start
        # A third of Kafka's poll interval: after it the thread polls.
        self._busy_poll_seconds = poll_interval / 3
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._joining: Future[protocol.Consumer] | None = None
        self._consumer: protocol.Consumer | None = None
        self._ends_at_join: dict[Partition, int] | None = None
        self._recorded: dict[Partition, int] = {}
        self._gaps = GapDetector(
            self._group, self._group_positions, lambda parts: offsets(0.0, parts), self._forget_position_ahead
        )
        self._topic_ids = TopicIds()
        self._outage = RepeatedOutage()
        self._prefetched: list[Delivery] = []
        self._lost: set[Partition] = set()
        self._recreated: set[Partition] = set()
        self._polled_at = time.monotonic()
        self._paused = False
        self._unplaced = False
        self._busy_poller: threading.Thread | None = None
        self._process = os.getpid()

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        deadline = time.monotonic() + timeout
        while not self._closed.is_set():
            left = max(0.0, min(CLOSE_CHECK_SECONDS, deadline - time.monotonic()))
            try:
                deliveries = self._poll_once(limit, left)
            except TransportUnavailable as error:
                self._outage.begin(error)
                raise
            if deliveries:
                self._outage.end()
                return deliveries
            if time.monotonic() >= deadline:
                with self._lock:
                    self._leave_dead_consumer()
                    self._outage.check(self._consumer)
                break
        return []

    def commit(self, positions: Positions) -> None:
        with self._lock:
            consumer = self._consumer
            lost = frozenset(positions) - (consumer.owned if consumer else set())
            if consumer is None or lost:
                named = ", ".join(f"{topic} {number}" for topic, number in sorted(lost))
                self._lost |= lost
                raise CommitRefused(f"group {self._group} gave partitions to another member: {named}", lost)
            try:
                ahead = {p: n for p, n in positions.items() if n > self._group_position(consumer, p)}
                if ahead and not self._private:
                    self._record(consumer, ahead)
            except TransportUnavailable:
                # A poll checks this too, but who has a commit to repeat does not poll.
                self._leave_dead_consumer()
                raise
            self._recorded.update(ahead)

    def seek(self, positions: Positions) -> None:
        with self._lock:
            self._prefetched = [d for d in self._prefetched if d.partition not in positions]
            consumer = self._consumer
            owned = [p for p in positions if consumer and p in consumer.owned]
            if consumer is None or not owned:
                return
            # Kafka takes a position behind the end for a lost one, and would start from the beginning.
            ends = self._offsets(None, owned)
            self._gaps.forget(owned)
            for partition in owned:
                end = ends.get(partition, 0)
                consumer.seek(partition, max(0, min(positions[partition], end)))

    def close(self) -> None:
        self._closed.set()
        if os.getpid() != self._process:
            return  # a forked child's copy: the membership is the parent's
        with self._lock:
            consumer, self._consumer = self._consumer, None
            joining, self._joining = self._joining, None
            if joining is not None:
                joining.add_done_callback(_close_late)
            if consumer is not None:
                consumer.close()

    def _poll_once(self, limit: int, timeout: float) -> Sequence[Delivery]:
        consumer = self._connected_consumer(timeout)
        if consumer is None:
            return []
        with self._lock:
            if self._closed.is_set():
                return []
            self._polled_at = time.monotonic()
            if self._paused:
                self._paused = False
                consumer.resume()
            if self._prefetched:
                deliveries, self._prefetched = self._prefetched[:limit], self._prefetched[limit:]
                return [d for d in deliveries if d.partition in consumer.owned]
            return self._fetch(consumer, limit, timeout)

    def _fetch(self, consumer: protocol.Consumer, limit: int, timeout: float) -> Sequence[Delivery]:
        if self._unplaced:
            # Its start is not known: leave, and join again with the next poll.
            self._unplaced, self._consumer = False, None
            consumer.close()
            return []
        deliveries = consumer.poll(limit, timeout)
        self._recreated |= self._topic_ids.recreated(consumer.topic_ids())
        recreated = self._recreated & consumer.owned
        if recreated:
            deliveries = [each for each in deliveries if each.partition not in recreated]
        deliveries = self._without_rewound(consumer, deliveries)
        if recreated:
            # The other partitions go on, also when this fails.
            self._prefetched = deliveries
            self._restart_recreated(consumer, recreated)
            self._prefetched = []
        return deliveries

    def _without_rewound(self, consumer: protocol.Consumer, deliveries: list[Delivery]) -> list[Delivery]:
        """Leave out what a client rewound to by itself, and have it go on where it was."""
        back = self._gaps.check(deliveries)
        for partition, position in back.items():
            about = (self._group, position, *partition)
            LOG.info("Group %s: the client left position %d of %s[%d] and is sent back to it", *about)
            # If this fails, the next delivery tries again; the other partitions must go on.
            with contextlib.suppress(MessagingException):
                consumer.seek(partition, position)
        return [each for each in deliveries if each.partition not in back] if back else deliveries

    def _restart_recreated(self, consumer: protocol.Consumer, partitions: set[Partition]) -> None:
        """Read a recreated topic from its first record: positions in the old topic mean nothing there.

        Nor does the group's: a commit for the old topic may have come after the new one was created.
        """
        beginning = dict.fromkeys(partitions, 0)
        self._gaps.forget(partitions)
        try:
            if not self._private:
                consumer.commit(beginning)
            for partition in partitions:
                consumer.seek(partition, 0)
        except (CommitRefused, TopicNotFound) as error:
            LOG.debug("Group %s tries again to start a recreated topic: %s", self._group, error)
            return
        self._recorded |= beginning
        self._recreated -= partitions
        named = ", ".join(sorted({partition.topic for partition in partitions}))
        LOG.warning(
            "Group %s starts from the beginning of a topic that was recreated: %s", self._group, named
        )

    def _leave_dead_consumer(self) -> None:
        """Let the next poll join again when this consumer will never reach a broker again."""
        consumer = self._consumer
        if consumer is not None and consumer.is_dead():
            LOG.warning("Group %s: the client does not reconnect by itself; a new one joins", self._group)
            self._consumer, self._paused = None, False
            # Its close may wait for ever for a broker.
            threading.Thread(target=consumer.close, daemon=True).start()

    def _connected_consumer(self, timeout: float) -> protocol.Consumer | None:
        """Return the consumer once there is one. It is made in a thread, because that blocks."""
        with self._lock:
            if self._consumer is not None or self._closed.is_set():
                return self._consumer
            if self._joining is None:
                self._joining = Future()
                work = threading.Thread(target=self._connect, args=(self._joining,), daemon=True)
                work.start()
            joining = self._joining
        try:
            consumer = joining.result(timeout)
        except TimeoutError:
            return None
        except MessagingException:
            self._joining = None
            raise
        with self._lock:
            if self._joining is joining:
                self._joining, self._consumer, self._topic_ids = None, consumer, TopicIds()
            return self._consumer

    def _connect(self, joining: "Future[protocol.Consumer]") -> None:
        try:
            if self._start == "latest" and self._ends_at_join is None:
                self._ends_at_join = self._offsets(None, ())
            consumer = self._join(self._group, self._start_offsets)
        except Exception as error:  # noqa: BLE001 - the thread that polls raises it
            joining.set_exception(error)
        else:
            joining.set_result(consumer)
            if self._busy_poller is None:
                self._polled_at = time.monotonic()
                self._busy_poller = threading.Thread(
                    target=self._poll_while_busy, name="notifier-kafka-member", daemon=True
                )
                self._busy_poller.start()

    def _start_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Say where gained partitions start; called by the consumer in its poll."""
        dropped = {d.partition for d in self._prefetched} | self._lost
        regained = [partition for partition in partitions if partition in dropped]
        self._prefetched = [d for d in self._prefetched if d.partition not in partitions]
        self._gaps.forget(partitions)
        if self._private:
            begin = {p: self._recorded[p] for p in partitions if self._recorded.get(p, -1) >= 0}
        else:
            begin = {}
            for partition in partitions:
                self._recorded.pop(partition, None)
        if self._consumer is None:
            return begin
        try:
            if regained and not self._private:
                # kafka-python keeps its position in a regained partition, behind records that were dropped.
                begin = self._offsets(0.0, regained) | self._consumer.committed(regained)
                self._lost.difference_update(regained)
            if self._start != "earliest":
                begin |= self._start_new(self._consumer, [p for p in partitions if p not in begin])
        except MessagingException:
            self._unplaced = True
            raise
        return begin

    def _start_new(
        self, consumer: protocol.Consumer, partitions: Sequence[Partition]
    ) -> dict[Partition, int]:
        known = {} if self._private else consumer.committed(partitions)
        new = [partition for partition in partitions if partition not in known]
        if isinstance(self._start, float | int):
            begin = self._offsets(self._start, new) if new else {}  # without names it would find all
        else:
            # A partition that did not exist when we joined is read from its beginning.
            begin = {p: self._ends_at_join[p] for p in new if self._ends_at_join and p in self._ends_at_join}
        if begin and not self._private:
            consumer.commit(begin)
        if not self._private:
            # The group has them now, and they say nothing about a topic that is recreated.
            self._ends_at_join = {
                p: offset for p, offset in (self._ends_at_join or {}).items() if p not in partitions
            }
        return begin

    def _group_position(self, consumer: protocol.Consumer, partition: Partition) -> int:
        if partition not in self._recorded:
            asked = () if self._private else [p for p in consumer.owned if p not in self._recorded]
            found = consumer.committed(asked) if asked else {}
            # -1 means no position, so that a commit of 0 is not skipped.
            self._recorded.update({p: found.get(p, -1) for p in asked or (partition,)})
        return self._recorded[partition]

    def _group_positions(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Find the group's positions for ``GapDetector``, which runs in our poll."""
        consumer = self._consumer
        owned = consumer.owned if consumer else set()
        return {p: self._group_position(consumer, p) for p in partitions if consumer and p in owned}

    def _forget_position_ahead(self, partition: Partition, offset: int) -> None:
        if offset < self._recorded.get(partition, -1):
            # After a seek, or in a recreated topic: the group has no position any more.
            del self._recorded[partition]

    def _record(self, consumer: protocol.Consumer, positions: Positions) -> None:
        try:
            consumer.commit(positions)
        except (CommitRefused, TopicNotFound) as error:
            self._lost |= positions.keys()
            raise CommitRefused(f"group {self._group}: {error}", frozenset(positions)) from error

    def _poll_while_busy(self) -> None:
        """Poll instead of a user who works for long."""
        while not self._closed.wait(min(1.0, self._busy_poll_seconds)):
            if time.monotonic() - self._polled_at < self._busy_poll_seconds or not self._lock.acquire(
                timeout=CLOSE_CHECK_SECONDS
            ):
                continue
            try:
                consumer = self._consumer
                if consumer is not None and not self._closed.is_set():
                    if not self._paused:
                        self._paused = True
                        consumer.pause()
                    # What comes in spite of the pause is kept for the user's next poll.
                    self._prefetched += self._without_rewound(consumer, consumer.poll(1, 0.0))
            except MessagingException as error:
                LOG.debug("Polling for a busy listener: %s", error)
            except Exception:
                # Go on: no other thread is started, and without one the group removes a busy member.
                LOG.exception("A client raised an error that it should have translated")
            finally:
                self._lock.release()


def _close_late(joining: "Future[protocol.Consumer]") -> None:
    if joining.exception() is None:
        joining.result().close()
