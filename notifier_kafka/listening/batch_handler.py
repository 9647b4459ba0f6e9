"""From deliveries to what may be committed: decode, dispatch, judge."""

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Delivery, Partition, Record
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening import requeue
from notifier_kafka.listening.dispatcher import (
    HANDLED,
    REQUEUE,
    UNFINISHED,
    BatchDispatcher,
    Dispatcher,
    Verdict,
)
from notifier_kafka.listening.recent_ids import DUPLICATE, Absent, Window
from notifier_kafka.listening.workers import Crew
from notifier_kafka.notification import Notification, NotificationResult
from notifier_kafka.stats.counters import Counters
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)

Found = Notification | DecodeError | Absent

STORED = Absent()
"""Stands for a record that was set aside already."""


class Settled(NamedTuple):
    """``positions`` may be committed once every record of ``moved`` is durable."""

    positions: dict[Partition, int]
    moved: list[Record]


class Terms(NamedTuple):
    """How a listener settles."""

    allow_requeue: bool
    max_attempts: int
    window: Window | None = None


class Settlement:
    """Settles deliveries: each is handled, comes back later or is set aside."""

    crew: Crew | None = None
    """Who handles, if not the thread that asks."""

    in_place = False
    """Whether nothing may overtake what an endpoint refuses: it is tried again then and there,
    and what is set aside is durable before the next is handled."""

    def __init__(self, dispatcher: Dispatcher, counters: Counters, terms: Terms) -> None:
        self._dispatcher = dispatcher
        self._counters = counters
        self._terms = terms
        self._now: tuple[Sequence[Delivery], Sequence[Found]] | None = None
        self._at: Delivery | None = None
        self._failed = self._again = 0  # how often one was tried in place

    def settle(
        self, deliveries: Sequence[Delivery], returns: requeue.Requeue, stopping: threading.Event
    ) -> Settled:
        """Let the endpoints handle deliveries, in order, until told to stop."""
        settled = Settled({}, [])
        if stopping.is_set():
            return settled
        found = self._open(deliveries)
        if self.in_place and not self._store_malformed(deliveries, found, returns, stopping):
            return settled
        self._now = (deliveries, found)
        verdicts = self._verdicts(deliveries, found, returns, stopping)
        handled: list[Found] = []
        gaps: set[Partition] = set()
        for delivery, one, verdict in zip(deliveries, found, verdicts, strict=True):
            if verdict is UNFINISHED or (gaps and delivery.partition in gaps):
                # What is finished behind it comes again: a position cannot leave one out.
                gaps.add(delivery.partition)
                continue
            if verdict is HANDLED:
                handled.append(one)
            elif record := self._move(delivery, one, verdict, returns):
                if not self.in_place:
                    settled.moved.append(record)
                elif not returns.store([record], stopping):
                    gaps.add(delivery.partition)
                    continue
            settled.positions[delivery.partition] = delivery.offset + 1
        self._now = None
        self._counters.add("handled", len(handled))
        if self._terms.window is not None:
            self._terms.window.remember(handled)
        return settled

    def positions(self) -> dict[Partition, int]:
        """Return the offsets behind what an endpoint is handling just now."""
        if self._now is None or self.crew is not None:
            return {}
        if not isinstance(self._dispatcher, BatchDispatcher):
            return {self._at.partition: self._at.offset + 1} if self._at else {}
        deliveries, found = self._now
        waiting = self._dispatcher.waiting
        positions: dict[Partition, int] = {}
        left_out: set[Partition] = set()
        for delivery, one in zip(deliveries, found, strict=True):
            if isinstance(one, Notification) and one.priority in waiting:
                left_out.add(delivery.partition)
            elif delivery.partition not in left_out:
                positions[delivery.partition] = delivery.offset + 1
        return positions

    def _open(self, deliveries: Sequence[Delivery]) -> list[Found]:
        found: list[Found] = [_decode(delivery) for delivery in deliveries]
        return found if self._terms.window is None else self._terms.window.screen(found)

    def _verdicts(
        self,
        deliveries: Sequence[Delivery],
        found: Sequence[Found],
        returns: requeue.Requeue,
        stopping: threading.Event,
    ) -> Iterator[Verdict | None]:
        """Yield a verdict for each delivery, None for what is no notification."""
        if self.crew is None and not isinstance(self._dispatcher, BatchDispatcher):
            yield from self._one_by_one(deliveries, found, returns, stopping)
            return
        notifications = [one for one in found if isinstance(one, Notification)]
        if self.crew is None:
            verdicts = iter(self._dispatcher.dispatch(notifications))
        else:
            pairs = zip(deliveries, found, strict=True)
            keys = [delivery.record.key for delivery, one in pairs if isinstance(one, Notification)]
            verdicts = iter(self.crew.dispatch(keys, notifications, stopping))
        if len(notifications) == len(found):
            yield from verdicts
            return
        for one in found:
            yield next(verdicts) if isinstance(one, Notification) else None

    def _one_by_one(
        self,
        deliveries: Sequence[Delivery],
        found: Sequence[Found],
        returns: requeue.Requeue,
        stopping: threading.Event,
    ) -> Iterator[Verdict | None]:
        handle, stopped = self._dispatcher.handle, stopping.is_set
        for delivery, one in zip(deliveries, found, strict=True):
            if not isinstance(one, Notification):
                yield None
            elif stopped():
                yield UNFINISHED
            else:
                self._at = delivery
                verdict = handle(one)
                if self.in_place and verdict is not HANDLED:
                    verdict = self._insist(one, verdict, returns, stopping)
                yield verdict

    def _insist(
        self, one: Notification, verdict: Verdict, returns: requeue.Requeue, stopping: threading.Event
    ) -> Verdict:
        """Try again in place, for as long as another would have it come back."""
        self._failed = self._again = 0
        while verdict.error is not None or (verdict is REQUEUE and self._terms.allow_requeue):
            if verdict.error is not None and self._failed + 1 >= self._terms.max_attempts:
                break
            self._counters.add("requeued")
            if stopping.wait(returns.delay(self._failed if verdict.error else 0)):
                return UNFINISHED
            self._failed += verdict.error is not None
            self._again += 1
            verdict = self._dispatcher.handle(one)
        return verdict

    def _move(
        self, delivery: Delivery, one: Found, verdict: Verdict | None, returns: requeue.Requeue
    ) -> Record | None:
        """Make the record that a delivery becomes elsewhere, if it is to become one."""
        if isinstance(one, DecodeError):
            return self._set_aside(delivery, one, returns)
        if verdict is None:
            if one is DUPLICATE:
                self._counters.add("duplicates")
            return None
        return self._judge(delivery, verdict, returns)

    def _store_malformed(
        self,
        deliveries: Sequence[Delivery],
        found: list[Found],
        returns: requeue.Requeue,
        stopping: threading.Event,
    ) -> bool:
        """Set malformed records aside before anything is handled; False when told to stop before."""
        records = []
        for index, one in enumerate(found):
            if isinstance(one, DecodeError):
                records.append(self._set_aside(deliveries[index], one, returns))
                found[index] = STORED
        return not records or returns.store(records, stopping)

    def _set_aside(self, delivery: Delivery, error: DecodeError, returns: requeue.Requeue) -> Record:
        self._counters.add("malformed")
        topic, number = delivery.partition
        LOG.warning(
            "Malformed record set aside: topic %s partition %d offset %d: %s",
            topic,
            number,
            delivery.offset,
            error,
        )
        return returns.aside(delivery, str(error))

    def _judge(self, delivery: Delivery, verdict: Verdict, returns: requeue.Requeue) -> Record | None:
        if verdict.result != NotificationResult.REQUEUE:
            self._counters.add("handled")
            return None
        if verdict.error is None and not self._terms.allow_requeue:
            # As in oslo.messaging: who did not ask for requeueing has it acknowledged.
            self._counters.add("refused")
            return None
        failure = returns.failures(delivery) + self._failed + 1
        if verdict.error is not None and failure >= self._terms.max_attempts:
            self._counters.add("dead_lettered")
            attempt = returns.attempts(delivery) + self._again + 1
            reason = f"endpoint raised {type(verdict.error).__name__} in attempt {attempt}"
            return returns.aside(delivery, reason, attempt)
        self._counters.add("requeued")
        return returns.again(delivery, failed=verdict.error is not None)


def _decode(delivery: Delivery) -> Notification | DecodeError:
    try:
        return codec.decode(delivery.record)
    except DecodeError as error:
        return error
