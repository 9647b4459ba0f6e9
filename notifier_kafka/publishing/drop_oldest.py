"""The overflow policy drop_oldest: a queue in front of the driver, whose oldest records can be dropped."""

import threading
import time
from collections import deque

from notifier_kafka.contract import after_fork, threads
from notifier_kafka.contract.driver import Driver, Limits, OnSettled, Record
from notifier_kafka.contract.record_size import size_in_bytes
from notifier_kafka.errors import DeliveryFailed, OutboxFull
from notifier_kafka.stats.losses import Losses

_FORKED = after_fork.renewed()

ROOM_CHECK_SECONDS = 0.005
# Records that the driver has cannot be taken back, so it gets half of the room only.
DRIVER_SHARE = 2


class DropOldestPublisher:
    """A ``Publisher``. Records for which the driver has no room wait here, in order."""

    _worker: threading.Thread | None

    def __init__(self, driver: Driver, limits: Limits, losses: Losses) -> None:
        records, size, retry = limits
        self._limits = Limits(max(1, records // DRIVER_SHARE), size // DRIVER_SHARE, retry)
        # A record too large for the driver's half is refused, although the other half is free.
        self._driver_publisher = driver.publisher(losses.lose, self._limits)
        self._losses = losses
        self._closed = False
        self.start_afresh()
        _FORKED.add(self)

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        """Hand over; without room, drop the oldest that wait. Never raises ``OutboxFull``."""
        if on_settled is not None:
            self._driver_publisher.offer(record, on_settled)
            return
        if not self._queue:
            try:
                self._driver_publisher.offer(record)
            except OutboxFull:
                pass
            else:
                return
        with self._lock:
            self._queue.append(record)
            self._bytes += size_in_bytes(record)
            if self._worker is None:
                # Set before it starts: a signal handler that publishes comes through here too.
                self._worker = threading.Thread(
                    target=self._feed, name="notifier-kafka-drop-oldest", daemon=True
                )
                try:
                    threads.start_to_publish(self._worker)
                except DeliveryFailed:
                    self._worker = None
                    self._queue.pop()
                    self._bytes -= size_in_bytes(record)
                    raise
            dropped = []
            while len(self._queue) > self._limits.records or self._bytes > self._limits.bytes:
                dropped.append(self._take())
        for oldest in dropped:
            self._losses.lose(oldest, OutboxFull("the oldest made room for a newer one"))

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self._queue and time.monotonic() < deadline:
            time.sleep(ROOM_CHECK_SECONDS)
        return len(self._queue) + self._driver_publisher.flush(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            worker = self._worker
        if worker is not None:
            worker.join()
        while self._queue:
            self._losses.lose(self._take(), DeliveryFailed("the publisher was closed before this was sent"))
        self._driver_publisher.close()

    def start_afresh(self) -> None:
        """Begin empty: in a child process the queue is the parent's to send."""
        self._lock = threading.RLock()
        self._queue: deque[Record] = deque()
        self._bytes = 0
        self._worker = None

    def _take(self) -> Record:
        record = self._queue.popleft()
        self._bytes -= size_in_bytes(record)
        return record

    def _feed(self) -> None:
        """Hand on the records that wait; end when none is left."""
        while not self._closed:
            with self._lock:
                if not self._queue:
                    self._worker = None
                    return
                record = self._queue[0]
                refused: DeliveryFailed | None = None
                try:
                    self._driver_publisher.offer(record)
                except DeliveryFailed as error:
                    refused = error
                full = isinstance(refused, OutboxFull)
                if not full:
                    self._take()
            if full:
                time.sleep(ROOM_CHECK_SECONDS)
            elif refused is not None:
                self._losses.lose(record, refused)
