"""A listener's loop: poll, decode, call the endpoints, store what comes back, commit.

The delivery guarantee is in ``Loop._settle``: a position is committed only after the
endpoints returned and what they refused is durable elsewhere. With at-most-once delivery it
is committed before they are called, in ``Loop._commit_and_settle``.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka.contract import threads
from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.errors import MessagingException
from notifier_kafka.listening.batch_handler import BatchHandler
from notifier_kafka.listening.requeue import STORE_AFTER_STOP_SECONDS, Requeue
from notifier_kafka.listening.tracked_subscription import DelayedSubscription, TrackedSubscription

LOG = logging.getLogger(__name__)

LEAVE_SECONDS = 5.0  # to store what waits, when a listener ends
IDLE_POLL_SECONDS = 0.2  # bounds how late a stop or a requeued notification is noticed
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 5.0  # between tries while the log is unavailable
NEVER = threading.Event()


class LoopPolicy(NamedTuple):
    """Up to ``batch_size`` deliveries are polled at once, for which ``batch_timeout`` seconds are waited."""

    batch_size: int
    batch_timeout: float
    at_most_once: bool


class Loop:
    """Runs on one thread. The endpoints that it calls may ask for ``positions``."""

    def __init__(
        self,
        subscriptions: tuple[TrackedSubscription, DelayedSubscription],
        requeue: Requeue,
        handler: BatchHandler,
        policy: LoopPolicy,
        stopping: threading.Event,
    ) -> None:
        self._topics, self._requeued = subscriptions
        self._requeue = requeue
        self._handler = handler
        self._policy = policy
        self._stopping = stopping
        self._positions: dict[Partition, int] = {}

    def run(self) -> None:
        """Listen until told to stop. Raises an error that no retry would cure."""
        self._handler.start()
        settle = self._commit_and_settle if self._policy.at_most_once else self._settle
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        available = True
        while not self._stopping.is_set():
            try:
                settle(self._topics, self._fetch())
                settle(self._requeued, self._requeued.poll_due(self._policy.batch_size, self._is_due))
                self._move_overtaken(self._stopping, leaving=False)
            except MessagingException as error:
                if not error.retriable:
                    raise
                if available:
                    LOG.warning("The log is unavailable; the listener goes on when it is back: %s", error)
                available = False
                self._stopping.wait(backoff.pause())
            else:
                if not available:
                    LOG.warning("The log is back")
                    available = True
                    backoff.reset()
        self._leave()

    def positions(self) -> dict[Partition, int]:
        """Return the offsets behind what an endpoint is handling now, or else behind all that is settled."""
        return self._handler.positions() or dict(self._positions)

    def close(self) -> list[MessagingException]:
        """End the workers and leave the group; return the errors of doing so."""
        self._handler.close()
        errors = []
        for part in (self._topics, self._requeued, self._requeue):
            try:
                part.close()
            except MessagingException as error:
                errors.append(error)
        return errors

    def _fetch(self) -> list[Delivery]:
        """Poll for a batch: return what there is, or with a batch_timeout wait for more."""
        limit = self._policy.batch_size
        deliveries = self._topics.poll(limit, IDLE_POLL_SECONDS)
        deadline = time.monotonic() + self._policy.batch_timeout
        while deliveries and len(deliveries) < limit and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                deliveries += self._topics.poll(limit - len(deliveries), min(left, IDLE_POLL_SECONDS))
            except MessagingException:
                # Handle what was polled before; the next poll raises this error again.
                break
        return deliveries

    def _move_overtaken(self, stopping: threading.Event, *, leaving: bool) -> None:
        """Store deliveries that wait once more, behind those that overtook them."""
        overtaken = self._requeued.overtaken(leaving=leaving)
        if overtaken and self._requeue.store([delivery.record for delivery in overtaken], stopping):
            self._requeued.release(overtaken)

    def _leave(self) -> None:
        """Move all that were overtaken, so that what was handled behind them does not come again."""
        if not self._requeued.overtaken(leaving=True):
            return
        late = threading.Event()
        timer = threading.Timer(LEAVE_SECONDS - STORE_AFTER_STOP_SECONDS, late.set)
        timer.daemon = True
        try:
            threads.start(timer, "bound the time of leaving")
            self._move_overtaken(late, leaving=True)
        except MessagingException as error:
            LOG.warning("Notifications handled behind others that wait will come again: %s", error)
        finally:
            timer.cancel()

    def _is_due(self, delivery: Delivery) -> bool:
        # At most once: all is committed before it is handled, so none may overtake another.
        return self._policy.at_most_once or self._requeue.is_due(delivery)

    def _settle(self, subscription: TrackedSubscription, deliveries: Sequence[Delivery]) -> None:
        """Handle deliveries, store what comes back or is set aside, then commit."""
        if not deliveries:
            return
        try:
            positions, unstored = self._handler.handle(deliveries, self._stopping)
            stored = not unstored or self._requeue.store(unstored, self._stopping)
        except MessagingException:
            subscription.redeliver(deliveries)
            raise
        if stored:
            self._positions |= positions
            subscription.commit(positions)

    def _commit_and_settle(self, subscription: TrackedSubscription, deliveries: Sequence[Delivery]) -> None:
        """Commit, then handle all deliveries, also when told to stop: they do not come again."""
        if not deliveries or self._stopping.is_set():
            return
        try:
            claimed = subscription.claim(deliveries)
        except MessagingException:
            subscription.redeliver(deliveries)
            raise
        positions, unstored = self._handler.handle(claimed, NEVER)
        self._positions |= positions
        if unstored and not self._requeue.store(unstored, self._stopping):
            LOG.error(
                "%d notifications may be lost: the listener stops, and could not set them aside in time",
                len(unstored),
            )
