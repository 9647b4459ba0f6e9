"""Several threads that handle what one listener polled."""

import queue
import threading
from collections.abc import Iterable, Sequence

from notifier_kafka.listening.dispatcher import UNFINISHED, BatchDispatcher, Dispatcher, Verdict
from notifier_kafka.notification import Notification

Task = tuple[Iterable[int], Sequence[Notification], list[Verdict]]


class Crew:
    """Handles a batch at a time: all of it is handled before the next is polled.

    So no more than a batch is in memory, and positions need no books of what is under way.
    """

    def __init__(self, dispatcher: Dispatcher, workers: int, *, ordered: bool, name: str) -> None:
        self._dispatcher = dispatcher
        self._whole = isinstance(dispatcher, BatchDispatcher)
        self._ordered = ordered
        self._stopping = threading.Event()
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        # Daemons, and not a ThreadPoolExecutor's: the interpreter's exit would wait for an
        # endpoint for ever before the listener is told to stop.
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def dispatch(
        self, keys: Sequence[bytes | None], notifications: Sequence[Notification], stopping: threading.Event
    ) -> list[Verdict]:
        """Return a verdict for each; ``UNFINISHED`` for what was not begun when told to stop."""
        self._stopping = stopping
        verdicts = [UNFINISHED] * len(notifications)
        shares = self._shares(keys)
        for share in shares:
            self._tasks.put((share, notifications, verdicts))
        failures = [self._done.get() for _ in shares]
        for failure in failures:
            if failure is not None:
                raise failure
        return verdicts

    def close(self) -> None:
        for _ in self._threads:
            self._tasks.put(None)

    def _shares(self, keys: Sequence[bytes | None]) -> list[Iterable[int]]:
        """Say which notifications each worker gets, by their places in the batch."""
        count = len(self._threads)
        if self._ordered:
            shares: list[list[int]] = [[] for _ in range(count)]
            for index, key in enumerate(keys):
                # Without a key no order was asked for.
                shares[(index if key is None else hash(key)) % count].append(index)
            return [share for share in shares if share]
        if self._whole:
            return [range(begin, len(keys), count) for begin in range(min(count, len(keys)))]
        # One iterator for all: who is free takes the next.
        return [iter(range(len(keys)))] * min(count, len(keys))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            failure: BaseException | None = None
            try:
                self._handle(*task)
            except BaseException as error:  # noqa: BLE001 - the listener's thread raises it
                failure = error
            self._done.put(failure)

    def _handle(
        self, share: Iterable[int], notifications: Sequence[Notification], verdicts: list[Verdict]
    ) -> None:
        if self._whole:
            places = list(share)
            if not self._stopping.is_set():
                found = self._dispatcher.dispatch([notifications[index] for index in places])
                for index, verdict in zip(places, found, strict=True):
                    verdicts[index] = verdict
            return
        for index in share:
            if self._stopping.is_set():
                break
            verdicts[index] = self._dispatcher.handle(notifications[index])
