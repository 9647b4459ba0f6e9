"""Publishing without blocking, around a client that can only block.

A bounded queue and one worker thread. The worker takes all records that wait and hands
them on as one batch: they share one slow durable write.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized

from notifier_kafka.contract import after_fork, callbacks, threads
from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import (
    Headers,
    Limits,
    OnFailure,
    OnSettled,
    Partition,
    Receipt,
    Record,
    make_receipt,
    make_record,
)
from notifier_kafka.contract.record_size import size_in_bytes
from notifier_kafka.errors import (
    DeliveryBarred,
    DeliveryFailed,
    DeliveryGivenUp,
    LogUnusable,
    MessagingException,
    OutboxFull,
)

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

# While another thread is busy in Python, every step of a delivery waits 5 ms for the
# interpreter lock. The larger the batch, the more records share that wait.
BATCH_RECORDS = 4_096
BATCH_BYTES = 4 * 1024 * 1024
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
WARNING_SECONDS = 10.0


class Landed:
    """The receipts of a durable batch, in its order. Each is made when it is asked for."""

    def __init__(self) -> None:
        self.partitions: list[Partition] = []
        self.offsets: list[int] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[Receipt]:
        return map(make_receipt, zip(self.partitions, self.offsets, strict=True))


Fates = Landed | Sequence[Receipt | MessagingException]
"""What became of each record of a batch, in their order."""

Deliver = Callable[[Sequence[Record]], Fates]
# The fields of a record, its on_settled, its size, and the record itself if it is of a driver's own class.
# A plain tuple of plain things: the garbage collector looks at it only once. With objects, a hundred
# thousand waiting records would cost the collector more than everything else that is done for them.
_Entry = tuple[str, bytes | None, bytes | None, Headers, OnSettled | None, int, Record | None]


class Outbox:
    """A ``Publisher`` around ``deliver``.

    ``deliver`` writes a batch durably, all or nothing, or raises an error of this package.
    ``retriable`` on the error decides whether the batch is tried again. Where a record can
    fail alone, ``deliver`` returns an error in place of its receipt; that error is final.
    ``LogUnusable`` is about all records. ``deliver`` should give up early once ``closed`` is
    true, because ``close`` waits for it. ``on_end`` is called last, on the worker thread.
    The worker waits ``linger`` seconds before it takes a batch that is not full: waking the
    worker costs a caller more than all else, and one wake-up then serves many records.
    """

    _idle: bool

    def __init__(
        self,
        deliver: Deliver,
        on_failure: OnFailure,
        limits: Limits,
        on_end: Callable[[], None] = lambda: None,
        linger: float = 0.0,
    ) -> None:
        self._deliver = deliver
        self._on_end = on_end
        self._on_failure = on_failure
        self._limits = limits
        self._linger = linger
        self._closed = False
        self._next_warning = 0.0
        self.start_afresh()
        _FORKED.add(self)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called; unsent records will be reported as failed."""
        return self._closed

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        topic, value, key, headers = record
        own = None if type(record) is Record else record
        size = size_in_bytes(record)
        limits = self._limits
        with self._lock:
            # The limits by index: the user's own thread pays for each tenth of a microsecond here.
            full = self._accepted - self._settled >= limits[0] or self._bytes + size > limits[1]
            if full or self._worker is None or self._closed:
                self._admit(size, full)
            # The counters before the append: a signal handler can only run during a call,
            # so no record waits uncounted.
            self._accepted += 1
            self._bytes += size
            self._queue.append((topic, value, key, headers, on_settled, size, own))
            if self._idle:
                self._idle = False
                self._arrived.notify()

    def flush(self, timeout: float) -> int:
        """Wait until all records accepted before this call are settled; return how many are not."""
        deadline = time.monotonic() + timeout
        with self._lock:
            goal = self._accepted
            while (remaining := deadline - time.monotonic()) > 0 and self._settled < goal:
                self._progress.wait(remaining)
            return max(0, goal - self._settled)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._arrived.notify_all()
            worker = self._worker
        if worker and worker is not threading.current_thread():
            worker.join()

    def start_afresh(self) -> None:
        """Begin empty: in a child process the records here are the parent's.

        The worker does not run there, and a missing thread may hold a lock.
        """
        # Reentrant: a signal handler may publish while its thread is in here.
        self._lock = threading.RLock()
        self._arrived = threading.Condition(self._lock)
        self._progress = threading.Condition(self._lock)
        self._queue: deque[_Entry] = deque()
        self._accepted = self._settled = self._bytes = 0
        self._idle = False
        self._worker: threading.Thread | None = None

    def _admit(self, size: int, full: bool) -> None:  # noqa: FBT001
        """Refuse a record, or start the worker for the first one."""
        if self._closed:
            raise DeliveryFailed("the publisher is closed: publish before closing it")
        if size > self._limits.bytes:
            raise DeliveryFailed(
                f"a record of {size} bytes exceeds the outbox of {self._limits.bytes}: "
                "raise [notifications] outbox_bytes or send less"
            )
        if full:
            raise OutboxFull(
                f"{self._accepted - self._settled} records ({self._bytes} bytes) already wait for "
                "the log: it is slow or unreachable"
            )
        if self._worker is None:
            # Set before it starts: a signal handler that publishes comes through here too.
            self._worker = threading.Thread(target=self._run, name="notifier-kafka-outbox", daemon=True)
            try:
                threads.start_to_publish(self._worker)
            except DeliveryFailed:
                self._worker = None
                raise

    def _run(self) -> None:
        while batch := self._take():
            self._process(batch)
        closed = DeliveryGivenUp("the publisher was closed before this record was sent")
        while self._queue:
            self._settle([self._queue.popleft()], closed)
        self._on_end()

    def _take(self) -> list[_Entry]:
        """Wait for records; take a batch of them, or nothing once closed."""
        queue = self._queue
        with self._lock:
            while not queue and not self._closed:
                self._idle = True
                self._arrived.wait()
            self._idle = False
            if self._closed:
                return []
        if self._linger and len(queue) < BATCH_RECORDS:
            time.sleep(self._linger)
        batch: list[_Entry] = []
        size = 0
        # Without the lock: no other thread takes records, and publishers need not wait.
        for _ in range(min(len(queue), BATCH_RECORDS)):
            if (size := size + queue[0][5]) > BATCH_BYTES and batch:
                break
            batch.append(queue.popleft())
        return batch

    def _process(self, batch: list[_Entry]) -> None:
        outcome = self._attempt(list(map(_record, batch)))
        refused = isinstance(outcome, MessagingException) and not outcome.retriable
        if refused and not isinstance(outcome, LogUnusable) and len(batch) > 1:
            # One record is at fault. Sent one by one, the others do not fail with it.
            for entry in batch:
                self._settle([entry], self._attempt([_record(entry)]))
        else:
            self._settle(batch, outcome)

    def _attempt(self, records: Sequence[Record]) -> Fates | MessagingException:
        """Deliver, with as many retries as the limits allow; return the outcome."""
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        tries = 0
        while not self._closed:
            try:
                receipts = self._deliver(records)
                missing = len(records) - len(receipts)
            except MessagingException as error:
                if not error.retriable or tries == self._limits.retry:
                    return error
                if not tries:
                    self._warn(error)
            except Exception as error:
                # A bug in the driver must cost these records only, and must be visible.
                LOG.exception("A driver raised an error that it should have translated")
                return DeliveryFailed(f"the driver failed: {type(error).__name__}: {error}")
            else:
                if tries:
                    LOG.warning("Publishing succeeded after %d retries", tries)
                return _refuse_receipts(records, receipts) if missing else receipts
            tries += 1
            with self._lock:
                self._arrived.wait_for(lambda: self._closed, backoff.pause())
        return DeliveryGivenUp("the publisher was closed before this record was sent")

    def _warn(self, error: MessagingException) -> None:
        if (now := time.monotonic()) >= self._next_warning:
            self._next_warning = now + WARNING_SECONDS
            LOG.warning("Publishing failed and will be retried: %s", error)

    def _settle(self, batch: list[_Entry], outcome: Fates | MessagingException) -> None:
        if isinstance(outcome, MessagingException):
            failure = _as_delivery_failure(outcome)
            for entry in batch:
                self._report(entry, failure)
        elif not isinstance(outcome, Landed) or any(entry[4] is not None for entry in batch):
            for entry, fate in zip(batch, outcome, strict=True):
                if isinstance(fate, MessagingException):
                    self._report(entry, _as_delivery_failure(fate))
                elif entry[4] is not None:
                    self._report(entry, fate)
        with self._lock:
            self._settled += len(batch)
            self._bytes -= sum(entry[5] for entry in batch)
            self._progress.notify_all()

    def _report(self, entry: _Entry, outcome: Receipt | MessagingException) -> None:
        about, on_settled = ("a settled record of topic", entry[0]), entry[4]
        if on_settled is not None:
            callbacks.call(LOG, about, on_settled, outcome)
        elif isinstance(outcome, MessagingException):
            callbacks.call(LOG, about, self._on_failure, _record(entry), outcome)


def _record(entry: _Entry) -> Record:
    return entry[6] or make_record(entry[:4])


def _refuse_receipts(records: Sequence[Record], receipts: Sized) -> list[MessagingException]:
    """Fail all records of a batch whose driver did not say which of them are durable.

    The error is final: a retry might write records twice.
    """
    said = f"a driver gave {len(receipts)} receipts for {len(records)} records"
    LOG.error("Publishing: %s; this is a bug in the driver", said)
    return [DeliveryFailed(f"{said}: the record may or may not be in the log")] * len(records)


def _as_delivery_failure(error: MessagingException) -> DeliveryFailed:
    if isinstance(error, DeliveryFailed):
        return error
    barred = DeliveryBarred if isinstance(error, LogUnusable) else DeliveryFailed
    failure = (DeliveryGivenUp if error.retriable else barred)(str(error))
    failure.__cause__ = error
    return failure
