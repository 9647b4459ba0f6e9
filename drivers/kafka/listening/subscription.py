"""Listening, whatever the client library: start positions, commits, membership.

Two promises need work that the libraries do not do:

* Where a group begins is fixed when its first member joins, and written down for the
  partitions that have no position: "latest" asked anew by the next owner would skip what the
  first was given and did not finish.
* A member may work for longer than Kafka's poll interval on what one poll brought. A thread
  then polls in its place, with everything on hold, so that the group neither throws the
  member out nor waits for it; a partition that moves on meanwhile is refused at commit.
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
from .gaps import Losses
from .repeated_outage import Outage

LOG = logging.getLogger(__name__)

SLICE = 0.2  # seconds of waiting after which a poll looks whether it was closed

Join = Callable[[str, protocol.Place | None], protocol.Consumer]
"""Connects a consumer of a group. Blocks."""

Offsets = Callable[[float | None, Sequence[Partition]], dict[Partition, int]]
"""Finds the offsets of a moment, None being now; of all partitions if none are named. Blocks."""


class KafkaSubscription:
    """A ``Subscription``. The lock is held by whoever uses the consumer."""

    def __init__(
        self, join: Join, offsets: Offsets, group: str | None, start: Start, patience: float
    ) -> None:
        self._join = join
        self._offsets = offsets
        self._group = group or naming.private()
        self._private = group is None
        self._start = start
        # After a third of Kafka's poll interval somebody should poll.
        self._patience = patience / 3
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._joining: Future[protocol.Consumer] | None = None
        self._consumer: protocol.Consumer | None = None
        self._now: dict[Partition, int] | None = None
        self._recorded: dict[Partition, int] = {}
        self._losses = Losses(self._group, self._known, lambda parts: offsets(0.0, parts), self._jumped)
        self._outage = Outage()
        self._early: list[Delivery] = []
        self._given_up: set[Partition] = set()
        self._again: set[Partition] = set()
        self._polled = time.monotonic()
        self._held = False
        self._misplaced = False
        self._keeper: threading.Thread | None = None
        self._process = os.getpid()

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        deadline = time.monotonic() + timeout
        while not self._closed.is_set():
            left = max(0.0, min(SLICE, deadline - time.monotonic()))
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
                    self._leave_forgotten()
                    self._outage.look(self._consumer)
                break
        return []

    def commit(self, positions: Positions) -> None:
        with self._lock:
            consumer = self._consumer
            lost = frozenset(positions) - (consumer.owned if consumer else set())
            if consumer is None or lost:
                named = ", ".join(f"{topic} {number}" for topic, number in sorted(lost))
                self._given_up |= lost
                raise CommitRefused(f"group {self._group} gave partitions to another member: {named}", lost)
            try:
                ahead = {p: n for p, n in positions.items() if n > self._position(consumer, p)}
                if ahead and not self._private:
                    self._record(consumer, ahead)
            except TransportUnavailable:
                # Who owes a commit does not poll, which would look for this as well.
                self._leave_forgotten()
                raise
            self._recorded.update(ahead)

    def seek(self, positions: Positions) -> None:
        with self._lock:
            self._early = [d for d in self._early if d.partition not in positions]
            consumer = self._consumer
            owned = [p for p in positions if consumer and p in consumer.owned]
            if consumer is None or not owned:
                return
            # Behind the end Kafka would take it for a position that was lost, and begin anew.
            ends = self._offsets(None, owned)
            self._losses.forget(owned)
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
        consumer = self._joined(timeout)
        if consumer is None:
            return []
        with self._lock:
            if self._closed.is_set():
                return []
            self._polled = time.monotonic()
            if self._held:
                self._held = False
                consumer.proceed()
            if self._early:
                deliveries, self._early = self._early[:limit], self._early[limit:]
                return [d for d in deliveries if d.partition in consumer.owned]
            return self._fetched(consumer, limit, timeout)

    def _fetched(self, consumer: protocol.Consumer, limit: int, timeout: float) -> Sequence[Delivery]:
        if self._misplaced:
            # It would begin anywhere: leave, and join anew with the next poll.
            self._misplaced, self._consumer = False, None
            consumer.close()
            return []
        deliveries = consumer.poll(limit, timeout)
        self._again |= consumer.made_again()
        again = self._again & consumer.owned
        if again:
            deliveries = [each for each in deliveries if each.partition not in again]
        deliveries = self._followed(consumer, deliveries)
        if again:
            # The others go on, whatever comes of these.
            self._early = deliveries
            self._begin_anew(consumer, again)
            self._early = []
        return deliveries

    def _followed(self, consumer: protocol.Consumer, deliveries: list[Delivery]) -> list[Delivery]:
        """Leave out what a client goes back to by itself, and have it go on where it was."""
        back = self._losses.look(deliveries)
        for partition, position in back.items():
            told = (self._group, position, *partition)
            LOG.info("Group %s: the client left %d of %s[%d] and goes back there", *told)
            # In vain, it is tried again with what comes next; what came of others must go on.
            with contextlib.suppress(MessagingException):
                consumer.seek(partition, position)
        return [each for each in deliveries if each.partition not in back] if back else deliveries

    def _begin_anew(self, consumer: protocol.Consumer, partitions: set[Partition]) -> None:
        """Read from the first record what is of another topic of that name: no position counts there.

        Not the group's either: a commit may have come between the two topics and be in the new one.
        """
        beginning = dict.fromkeys(partitions, 0)
        self._losses.forget(partitions)
        try:
            if not self._private:
                consumer.commit(beginning)
            for partition in partitions:
                consumer.seek(partition, 0)
        except (CommitRefused, TopicNotFound) as error:
            LOG.debug("Group %s tries again to begin anew: %s", self._group, error)
            return
        self._recorded |= beginning
        self._again -= partitions
        named = ", ".join(sorted({partition.topic for partition in partitions}))
        LOG.warning("Group %s begins anew: deleted and made again was topic %s", self._group, named)

    def _leave_forgotten(self) -> None:
        """Let the next poll join anew when this member is lost for good."""
        consumer = self._consumer
        if consumer is not None and consumer.forgotten():
            LOG.warning("Group %s: the client does not come back by itself; a new one joins", self._group)
            self._consumer, self._held = None, False
            # It may wait for ever for somebody to say good-bye to.
            threading.Thread(target=consumer.close, daemon=True).start()

    def _joined(self, timeout: float) -> protocol.Consumer | None:
        """Return the consumer, once there is one; it is made in a thread, as that blocks."""
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
                self._joining, self._consumer = None, consumer
            return self._consumer

    def _connect(self, joining: "Future[protocol.Consumer]") -> None:
        try:
            if self._start == "latest" and self._now is None:
                self._now = self._offsets(None, ())
            consumer = self._join(self._group, self._place)
        except Exception as error:  # noqa: BLE001 - the thread that polls raises it
            joining.set_exception(error)
        else:
            joining.set_result(consumer)
            if self._keeper is None:
                self._polled = time.monotonic()
                self._keeper = threading.Thread(target=self._keep, name="notifier-kafka-member", daemon=True)
                self._keeper.start()

    def _place(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Say where partitions begin that became ours; called by the consumer in its poll."""
        dropped = {d.partition for d in self._early} | self._given_up
        back = [partition for partition in partitions if partition in dropped]
        self._early = [d for d in self._early if d.partition not in partitions]
        self._losses.forget(partitions)
        if self._private:
            begin = {p: self._recorded[p] for p in partitions if self._recorded.get(p, -1) >= 0}
        else:
            begin = {}
            for partition in partitions:
                self._recorded.pop(partition, None)
        if self._consumer is None:
            return begin
        try:
            if back and not self._private:
                # kafka-python keeps its position in what comes back, behind what was given up of it.
                begin = self._offsets(0.0, back) | self._consumer.committed(back)
                self._given_up.difference_update(back)
            if self._start != "earliest":
                begin |= self._begin(self._consumer, [p for p in partitions if p not in begin])
        except MessagingException:
            self._misplaced = True
            raise
        return begin

    def _begin(self, consumer: protocol.Consumer, partitions: Sequence[Partition]) -> dict[Partition, int]:
        known = {} if self._private else consumer.committed(partitions)
        new = [partition for partition in partitions if partition not in known]
        if isinstance(self._start, float | int):
            begin = self._offsets(self._start, new) if new else {}  # for none named it finds all
        else:
            # A partition that was not there when we joined is read from its beginning.
            begin = {p: self._now[p] for p in new if self._now and p in self._now}
        if begin and not self._private:
            consumer.commit(begin)
        if not self._private:
            # The group has them now. Of a topic that is made again they say nothing.
            self._now = {p: offset for p, offset in (self._now or {}).items() if p not in partitions}
        return begin

    def _position(self, consumer: protocol.Consumer, partition: Partition) -> int:
        if partition not in self._recorded:
            asked = () if self._private else [p for p in consumer.owned if p not in self._recorded]
            found = consumer.committed(asked) if asked else {}
            # -1 for none: also a position of 0 is worth recording then.
            self._recorded.update({p: found.get(p, -1) for p in asked or (partition,)})
        return self._recorded[partition]

    def _known(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Find the group's positions for ``Losses``; the consumer's thread is ours here."""
        consumer = self._consumer
        owned = consumer.owned if consumer else set()
        return {p: self._position(consumer, p) for p in partitions if consumer and p in owned}

    def _jumped(self, partition: Partition, offset: int) -> None:
        if offset < self._recorded.get(partition, -1):
            # Sought, or of a topic that was made again: then the group has no position any more.
            del self._recorded[partition]

    def _record(self, consumer: protocol.Consumer, positions: Positions) -> None:
        try:
            consumer.commit(positions)
        except (CommitRefused, TopicNotFound) as error:
            self._given_up |= positions.keys()
            raise CommitRefused(f"group {self._group}: {error}", frozenset(positions)) from error

    def _keep(self) -> None:
        """Poll in the place of a user who is at work for long."""
        while not self._closed.wait(min(1.0, self._patience)):
            if time.monotonic() - self._polled < self._patience or not self._lock.acquire(timeout=SLICE):
                continue
            try:
                consumer = self._consumer
                if consumer is not None and not self._closed.is_set():
                    if not self._held:
                        self._held = True
                        consumer.hold()
                    # What slips through the hold is kept for the user's next poll.
                    self._early += self._followed(consumer, consumer.poll(1, 0.0))
            except MessagingException as error:
                LOG.debug("Polling for a listener at work: %s", error)
            except Exception:
                # Nobody starts another: without it the group throws out whoever works for long.
                LOG.exception("A client raised an error that it should have translated")
            finally:
                self._lock.release()


def _close_late(joining: "Future[protocol.Consumer]") -> None:
    if joining.exception() is None:
        joining.result().close()
