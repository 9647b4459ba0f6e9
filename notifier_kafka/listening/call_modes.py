"""The four ways to call the endpoints for a batch: when, and on which thread.

A mode finds the verdict of one delivery at a time, in the order of the batch. ``OneByOne``
calls the endpoints only when it is asked for a verdict, so that its caller may store what the
delivery before became. The other modes handle the whole batch when it begins.
"""

import abc
import threading
from collections.abc import Iterator, Sequence

from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening.dispatcher import (
    HANDLED,
    REQUEUE,
    UNFINISHED,
    BatchDispatcher,
    Dispatcher,
    Verdict,
)
from notifier_kafka.listening.failure_log import FailureLog
from notifier_kafka.listening.recent_ids import Skipped
from notifier_kafka.listening.requeue import Requeue, RetryRules
from notifier_kafka.listening.workers import WorkerPool
from notifier_kafka.notification import Notification
from notifier_kafka.stats.counters import Counters

Decoded = Notification | DecodeError | Skipped


class CallMode(abc.ABC):
    """Calls the endpoints for one batch after another."""

    def start(self) -> None:  # noqa: B027 - most modes need nothing
        """Start what the mode needs; once, before the first batch."""

    def close(self) -> None:  # noqa: B027
        """End what was started."""

    @abc.abstractmethod
    def begin(
        self, deliveries: Sequence[Delivery], decoded: Sequence[Decoded], stopping: threading.Event
    ) -> None:
        """Begin a batch. Only the notifications in ``decoded`` are handled."""

    @abc.abstractmethod
    def verdict(self, delivery: Delivery, notification: Notification) -> Verdict:
        """Return the verdict of the next notification of the batch."""

    @abc.abstractmethod
    def end(self) -> None:
        """End the batch, also after an error."""

    def positions(self) -> dict[Partition, int]:
        """Return the offsets behind what an endpoint is handling now; empty if that is not known."""
        return {}


class OneByOne(CallMode):
    """Handles a notification when its verdict is asked for, and not before."""

    def __init__(self, dispatcher: Dispatcher, failures: FailureLog) -> None:
        self._dispatcher = dispatcher
        self._failures = failures
        self._stopping = threading.Event()
        self._current: Delivery | None = None

    def begin(
        self,
        deliveries: Sequence[Delivery],  # noqa: ARG002
        decoded: Sequence[Decoded],  # noqa: ARG002
        stopping: threading.Event,
    ) -> None:
        self._stopping = stopping

    def verdict(self, delivery: Delivery, notification: Notification) -> Verdict:
        if self._stopping.is_set():
            return UNFINISHED
        self._current = delivery
        verdict = self._dispatcher.handle(notification)
        return verdict if verdict is HANDLED else self._refused(delivery, notification, verdict)

    def end(self) -> None:
        self._current = None

    def positions(self) -> dict[Partition, int]:
        current = self._current
        return {} if current is None else {current.partition: current.offset + 1}

    def _refused(self, delivery: Delivery, notification: Notification, verdict: Verdict) -> Verdict:
        if verdict.error is not None:
            self._failures.log_batch([delivery], [notification], [verdict])
        return verdict


class OneByOneInPlace(OneByOne):
    """Tries a refused notification again at once, so that none overtakes it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        failures: FailureLog,
        requeue: Requeue,
        rules: RetryRules,
        counters: Counters,
    ) -> None:
        super().__init__(dispatcher, failures)
        self._requeue = requeue
        self._rules = rules
        self._counters = counters

    def _refused(self, delivery: Delivery, notification: Notification, verdict: Verdict) -> Verdict:
        retries = failures = 0
        while verdict.error is not None or (verdict is REQUEUE and self._rules.allow_requeue):
            if verdict.error is not None:
                verdict = verdict._replace(retries=retries, failures=failures)
                is_last = failures + 1 >= self._rules.max_attempts
                self._failures.log(delivery, notification, verdict, is_last=is_last)
                if is_last:
                    break
            self._counters.add("requeued")
            if self._stopping.wait(self._requeue.delay(failures if verdict.error else 0)):
                return UNFINISHED
            failures += verdict.error is not None
            retries += 1
            verdict = self._dispatcher.handle(notification)
        return verdict


class WholeBatch(CallMode):
    """Gives the endpoints the whole batch, as a list for each priority."""

    def __init__(self, dispatcher: BatchDispatcher, failures: FailureLog) -> None:
        self._dispatcher = dispatcher
        self._failures = failures
        self._batch: tuple[Sequence[Delivery], Sequence[Decoded]] = ((), ())
        self._verdicts: Iterator[Verdict] = iter(())

    def begin(
        self,
        deliveries: Sequence[Delivery],
        decoded: Sequence[Decoded],
        stopping: threading.Event,  # noqa: ARG002 - lists are handled whole
    ) -> None:
        self._batch = (deliveries, decoded)
        records, notifications = only_notifications(deliveries, decoded)
        verdicts = list(self._dispatcher.dispatch(notifications))
        self._failures.log_batch(records, notifications, verdicts)
        self._verdicts = iter(verdicts)

    def verdict(self, delivery: Delivery, notification: Notification) -> Verdict:  # noqa: ARG002
        return next(self._verdicts)

    def end(self) -> None:
        self._batch, self._verdicts = ((), ()), iter(())

    def positions(self) -> dict[Partition, int]:
        undelivered = self._dispatcher.undelivered_priorities
        positions: dict[Partition, int] = {}
        stopped: set[Partition] = set()
        for delivery, one in zip(*self._batch, strict=True):
            if isinstance(one, Notification) and one.priority in undelivered:
                stopped.add(delivery.partition)
            elif delivery.partition not in stopped:
                positions[delivery.partition] = delivery.offset + 1
        return positions


class ByWorkers(CallMode):
    """Shares the batch out among worker threads, and waits for all of them."""

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._verdicts: Iterator[Verdict] = iter(())

    def start(self) -> None:
        self._workers.start()

    def close(self) -> None:
        self._workers.close()

    def begin(
        self, deliveries: Sequence[Delivery], decoded: Sequence[Decoded], stopping: threading.Event
    ) -> None:
        records, notifications = only_notifications(deliveries, decoded)
        self._verdicts = iter(self._workers.dispatch(records, notifications, stopping))

    def verdict(self, delivery: Delivery, notification: Notification) -> Verdict:  # noqa: ARG002
        return next(self._verdicts)

    def end(self) -> None:
        self._verdicts = iter(())


def only_notifications(
    deliveries: Sequence[Delivery], decoded: Sequence[Decoded]
) -> tuple[list[Delivery], list[Notification]]:
    """Leave out the malformed and the skipped."""
    pairs = zip(deliveries, decoded, strict=True)
    kept = [(delivery, one) for delivery, one in pairs if isinstance(one, Notification)]
    return [delivery for delivery, _ in kept], [notification for _, notification in kept]
