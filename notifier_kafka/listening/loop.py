"""What a listener does: poll, decode, dispatch, settle, commit; in this order, for ever.

The delivery guarantee can be read in ``Loop._settle``: a position is committed only after
the endpoints returned and what they refused is durable elsewhere. At most once, it is
committed before, in ``Loop._commit_and_settle``.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.errors import MessagingException
from notifier_kafka.listening.batch_handler import Settlement
from notifier_kafka.listening.requeue import GRACE, Requeue
from notifier_kafka.listening.tracked_subscription import Lane, WaitingLane

LOG = logging.getLogger(__name__)

FAREWELL = 5.0  # seconds to store what waits, when a listener ends
IDLE_POLL = 0.2  # seconds; bounds how late a stop or a requeued notification is noticed
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between tries while the log is unavailable
NEVER = threading.Event()


class Policy(NamedTuple):
    """``limit`` deliveries are polled at most, for which ``fill`` seconds are waited."""

    limit: int
    fill: float
    at_most_once: bool


class Loop:
    """Runs on one thread; ``positions`` is for the endpoints that it calls."""

    def __init__(
        self,
        lanes: tuple[Lane, WaitingLane],
        requeue: Requeue,
        settlement: Settlement,
        policy: Policy,
        stopping: threading.Event,
    ) -> None:
        self._main, self._returns = lanes
        self._requeue = requeue
        self._settlement = settlement
        self._policy = policy
        self._stopping = stopping
        self._positions: dict[Partition, int] = {}

    def run(self) -> None:
        """Listen until told to stop. Raises what will not pass."""
        settle = self._commit_and_settle if self._policy.at_most_once else self._settle
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                settle(self._main, self._fetch())
                settle(self._returns, self._returns.poll_due(self._policy.limit, self._is_due))
                self._move_back(self._stopping, leaving=False)
            except MessagingException as error:
                if not error.retriable:
                    raise
                if pause == FIRST_PAUSE:
                    LOG.warning("The log is unavailable, listening goes on when it is back: %s", error)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if pause != FIRST_PAUSE:
                    LOG.warning("The log is back")
                    pause = FIRST_PAUSE
        self._leave_behind()

    def positions(self) -> dict[Partition, int]:
        """Return those behind what an endpoint is handling just now, or else behind all that is settled."""
        return self._settlement.positions() or dict(self._positions)

    def close(self) -> list[MessagingException]:
        """Leave the group; return what that ran into."""
        errors = []
        for part in (self._main, self._returns, self._requeue):
            try:
                part.close()
            except MessagingException as error:
                errors.append(error)
        return errors

    def _fetch(self) -> list[Delivery]:
        """Get what there is, up to a batch; with a batch_timeout wait for more."""
        limit = self._policy.limit
        deliveries = self._main.poll(limit, IDLE_POLL)
        deadline = time.monotonic() + self._policy.fill
        while deliveries and len(deliveries) < limit and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                deliveries += self._main.poll(limit - len(deliveries), min(left, IDLE_POLL))
            except MessagingException:
                # What came before is to be handled whatever ails the log; the next poll tells.
                break
        return deliveries

    def _move_back(self, stopping: threading.Event, *, leaving: bool) -> None:
        """Store once more, behind the others, what waits and was overtaken."""
        overtaken = self._returns.overtaken(leaving=leaving)
        if overtaken and self._requeue.store([delivery.record for delivery in overtaken], stopping):
            self._returns.let_go(overtaken)

    def _leave_behind(self) -> None:
        """See to it that nothing that was handled comes again because something before it waits."""
        if not self._returns.overtaken(leaving=True):
            return
        late = threading.Event()
        timer = threading.Timer(FAREWELL - GRACE, late.set)
        timer.daemon = True
        timer.start()
        try:
            self._move_back(late, leaving=True)
        except MessagingException as error:
            LOG.warning("What was handled behind notifications that wait comes again: %s", error)
        finally:
            timer.cancel()

    def _is_due(self, delivery: Delivery) -> bool:
        # At most once, what is handled is committed before, so nothing may be passed by.
        return self._policy.at_most_once or self._requeue.is_due(delivery)

    def _settle(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        """Handle deliveries, make durable what comes back or is set aside, then commit."""
        if not deliveries:
            return
        try:
            positions, moved = self._settlement.settle(deliveries, self._requeue, self._stopping)
            stored = not moved or self._requeue.store(moved, self._stopping)
        except MessagingException:
            lane.take_back(deliveries)
            raise
        if stored:
            self._positions |= positions
            lane.commit(positions)

    def _commit_and_settle(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        """Commit, then handle all of it, also when told to stop: nobody else will."""
        if not deliveries or self._stopping.is_set():
            return
        try:
            ours = lane.claim(deliveries)
        except MessagingException:
            lane.take_back(deliveries)
            raise
        positions, moved = self._settlement.settle(ours, self._requeue, NEVER)
        self._positions |= positions
        if moved and not self._requeue.store(moved, self._stopping):
            LOG.error(
                "%d notifications were not set aside: the listener stops and the log is away", len(moved)
            )
