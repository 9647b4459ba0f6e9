"""The policy drop_oldest: a queue before the driver's own, from which the oldest can go."""

import threading
import time
from collections import deque

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import Driver, Limits, OnSettled, Record
from notifier_kafka.errors import DeliveryFailed, OutboxFull
from notifier_kafka.stats.losses import Losses

_FORKED = after_fork.renewed()

LOOK = 0.005
SHARE = 2  # what a driver has is the driver's: half of the room is for it


class Ring:
    """A ``Publisher``. What finds no room in the driver's waits here, in order."""

    _worker: threading.Thread | None

    def __init__(self, driver: Driver, limits: Limits, losses: Losses) -> None:
        self._limits = Limits(max(1, limits.records // SHARE), limits.bytes // SHARE, limits.retry)
        # One that is refused for its size by the driver is refused for the whole of the limits.
        self._bus = driver.publisher(losses.lose, self._limits)
        self._losses = losses
        self._closed = False
        self.start_afresh()
        _FORKED.add(self)

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        """Hand over, dropping the oldest that wait when there is no room; never raises ``OutboxFull``."""
        if on_settled is not None:
            self._bus.offer(record, on_settled)
            return
        if not self._queue:
            try:
                self._bus.offer(record)
            except OutboxFull:
                pass
            else:
                return
        with self._lock:
            self._queue.append(record)
            self._bytes += _size(record)
            if self._worker is None:
                # Before it starts, for a signal handler that publishes comes through here too.
                self._worker = threading.Thread(target=self._feed, name="notifier-kafka-ring", daemon=True)
                try:
                    self._worker.start()
                except RuntimeError as error:
                    self._worker = None
                    self._queue.pop()
                    self._bytes -= _size(record)
                    raise DeliveryFailed(f"no thread to publish from: {error}") from error
            dropped = []
            while len(self._queue) > self._limits.records or self._bytes > self._limits.bytes:
                dropped.append(self._take())
        for oldest in dropped:
            self._losses.lose(oldest, OutboxFull("the oldest made room for a newer one"))

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self._queue and time.monotonic() < deadline:
            time.sleep(LOOK)
        return len(self._queue) + self._bus.flush(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            worker.join()
        while self._queue:
            self._losses.lose(self._take(), DeliveryFailed("the publisher was closed before this was sent"))
        self._bus.close()

    def start_afresh(self) -> None:
        """Begin empty; in a child process the queue is the parent's to send."""
        self._lock = threading.RLock()
        self._queue: deque[Record] = deque()
        self._bytes = 0
        self._worker = None

    def _take(self) -> Record:
        record = self._queue.popleft()
        self._bytes -= _size(record)
        return record

    def _feed(self) -> None:
        """Hand on what waits; ends when there is nothing."""
        while not self._closed:
            with self._lock:
                if not self._queue:
                    self._worker = None
                    return
                record = self._queue[0]
                refused: DeliveryFailed | None = None
                try:
                    self._bus.offer(record)
                except DeliveryFailed as error:
                    refused = error
                full = isinstance(refused, OutboxFull)
                if not full:
                    self._take()
            if full:
                time.sleep(LOOK)
            elif refused is not None:
                self._losses.lose(record, refused)


def _size(record: Record) -> int:
    _, value, key, headers = record
    return len(value or b"") + len(key or b"") + sum(len(name) + len(content) for name, content in headers)
