"""A pool of threads that handle the batch of one listener."""

import queue
import threading
from collections.abc import Iterable, Sequence

from notifier_kafka.contract import threads
from notifier_kafka.contract.driver import Delivery
from notifier_kafka.listening.dispatcher import UNFINISHED, Dispatcher, Verdict
from notifier_kafka.listening.failure_log import FailureLog
from notifier_kafka.notification import Notification


class Batch:
    """The notifications that the workers handle now, and the verdicts that they have found."""

    def __init__(
        self,
        deliveries: Sequence[Delivery],
        notifications: Sequence[Notification],
        stopping: threading.Event,
    ) -> None:
        self.deliveries = deliveries
        self.notifications = notifications
        self.stopping = stopping
        self.verdicts = [UNFINISHED] * len(notifications)


Task = tuple[Batch, Iterable[int]]
"""A batch, and the indexes of the notifications in it that one worker handles."""


class WorkerPool:
    """Handles one batch at a time: the next is polled when all of it is handled.

    So no more than a batch is in memory, and only whole batches have to be tracked.
    """

    def __init__(
        self, dispatcher: Dispatcher, failures: FailureLog, workers: int, *, ordered: bool, name: str
    ) -> None:
        self._dispatcher = dispatcher
        self._failures = failures
        self._ordered = ordered
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        # Daemon threads, not a ThreadPoolExecutor: at the interpreter's exit it would wait for
        # an endpoint without end, before the listener is told to stop.
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            threads.start(thread, "handle notifications")

    def dispatch(
        self,
        deliveries: Sequence[Delivery],
        notifications: Sequence[Notification],
        stopping: threading.Event,
    ) -> list[Verdict]:
        """Return a verdict for each; ``UNFINISHED`` for those not begun when told to stop."""
        batch = Batch(deliveries, notifications, stopping)
        shares = self._shares(deliveries)
        for share in shares:
            self._tasks.put((batch, share))
        errors = [self._done.get() for _ in shares]
        for error in errors:
            if error is not None:
                raise error
        return batch.verdicts

    def close(self) -> None:
        for _ in self._threads:
            self._tasks.put(None)

    def _shares(self, deliveries: Sequence[Delivery]) -> list[Iterable[int]]:
        """Divide the batch among the workers: the indexes that each handles."""
        if not self._ordered:
            return self._unordered_shares(len(deliveries), min(len(self._threads), len(deliveries)))
        count = len(self._threads)
        shares: list[list[int]] = [[] for _ in range(count)]
        for index, delivery in enumerate(deliveries):
            key = delivery.record.key
            # Records without a key have no order to keep.
            shares[(index if key is None else hash(key)) % count].append(index)
        return [share for share in shares if share]

    def _unordered_shares(self, size: int, count: int) -> list[Iterable[int]]:
        # One iterator for all: a worker that is free takes the next.
        return [iter(range(size))] * count

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            error: BaseException | None = None
            try:
                self._handle(*task)
            except BaseException as raised:  # noqa: BLE001 - the listener's thread raises it again
                error = raised
            self._done.put(error)

    def _handle(self, batch: Batch, share: Iterable[int]) -> None:
        for index in share:
            if batch.stopping.is_set():
                break
            verdict = self._dispatcher.handle(batch.notifications[index])
            batch.verdicts[index] = verdict
            if verdict.error is not None:
                self._failures.log_batch([batch.deliveries[index]], [batch.notifications[index]], [verdict])


class BatchWorkerPool(WorkerPool):
    """Gives each worker's share of the batch to the endpoints in lists."""

    def _unordered_shares(self, size: int, count: int) -> list[Iterable[int]]:
        return [range(first, size, count) for first in range(count)]

    def _handle(self, batch: Batch, share: Iterable[int]) -> None:
        if batch.stopping.is_set():
            return
        indexes = list(share)
        notifications = [batch.notifications[index] for index in indexes]
        verdicts = list(self._dispatcher.dispatch(notifications))
        for index, verdict in zip(indexes, verdicts, strict=True):
            batch.verdicts[index] = verdict
        self._failures.log_batch([batch.deliveries[index] for index in indexes], notifications, verdicts)
