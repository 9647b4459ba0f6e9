"""Publishing, whatever the client library: checks, topics on first use, fork.

A client's publisher is given records of topics that exist. Records of a topic that is not
known yet wait here, in order, while a thread sees to it that there is one.
"""

import ctypes
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import Limits, OnFailure, OnSettled, Publisher, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException, OutboxFull

from .. import errors, naming
from .partitioning import Topics

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
ROOM_CHECK = 0.01

Make = Callable[[OnFailure, Callable[[str], None]], Publisher]


_Waiting = tuple[Record, OnSettled | None, float]
"""With the moment from which it waits."""


class TopicGate:
    """A ``Publisher`` before a client's own."""

    def __init__(
        self, make: Make, topics: Topics, on_failure: OnFailure, limits: Limits, bounds: tuple[int, float]
    ) -> None:
        """``bounds`` are how large a record may be and how many seconds it may wait for its topic."""
        self._make = make
        self._ensure, self._place = topics
        self._on_failure = on_failure
        self._limits = limits
        self._largest, self._patience = bounds
        self._closed = False
        self._publisher: Publisher | None = make(self._report, self._restore)
        self._start_empty()
        _FORKED.add(self)

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        topic, value, key, _ = record
        size = (len(value) if value else 0) + (len(key) if key else 0)
        if size > self._largest:
            raise DeliveryFailed(
                f"topic {topic}: a record of {size} bytes exceeds {self._largest}: "
                "raise [drivers_kafka] max_request_size or send less"
            )
        if on_settled is not None:
            on_settled = partial(self._pass_on, topic, on_settled)
        count = self._known.get(topic)
        if count is not None and (publisher := self._publisher) is not None:
            try:
                publisher.offer(self._place(record, count), on_settled)
            except errors.TopicGone:
                self._known.pop(topic, None)
            else:
                return
        self._hold(record, on_settled, size)

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        with self._lock:
            while self._held and (left := deadline - time.monotonic()) > 0:
                self._moved.wait(left)
            held, publisher = self._held, self._publisher
        return held + (publisher.flush(max(0.0, deadline - time.monotonic())) if publisher else 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._moved.notify_all()
            publisher = self._publisher
        # An opener may be in a call that takes seconds, and finds nothing to do after it.
        for topic in list(self._waiting):
            self._give_up(topic, DeliveryGivenUp("the publisher was closed before this record was sent"))
        if publisher is not None:
            publisher.close()

    def await_opener(self) -> None:
        """Wait, after ``close``, until no call for a topic is under way."""
        opener = self._opener
        if opener and opener is not threading.current_thread():
            opener.join()

    def start_afresh(self) -> None:
        """Start anew in a child process: what is under way, and its threads, are the parent's."""
        if self._publisher is not None:
            abandon(self._publisher)
        self._publisher = None
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = threading.RLock()
        self._moved = threading.Condition(self._lock)
        self._known: dict[str, int] = {}
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._held = self._bytes = 0
        self._opener: threading.Thread | None = None

    def _hold(self, record: Record, on_settled: OnSettled | None, size: int) -> None:
        complaint = naming.complaint(record.topic)
        if complaint:
            raise DeliveryFailed(complaint)
        if size > self._limits.bytes:
            raise DeliveryFailed(
                f"topic {record.topic}: a record of {size} bytes exceeds the outbox of {self._limits.bytes}: "
                "raise [notifications] outbox_bytes or send less"
            )
        with self._lock:
            if self._closed:
                raise DeliveryFailed("the publisher is closed: publish before closing it")
            if self._publisher is None:
                self._publisher = self._make(self._report, self._restore)
            if (count := self._known.get(record.topic)) is not None:
                self._publisher.offer(self._place(record, count), on_settled)
                return
            if self._held >= self._limits.records or self._bytes + size > self._limits.bytes:
                raise OutboxFull(f"{self._held} records wait for their topics already: Kafka is away")
            if self._opener is None:
                self._start_opener(record.topic)
            self._waiting.setdefault(record.topic, deque()).append((record, on_settled, time.monotonic()))
            self._held += 1
            self._bytes += size

    def _start_opener(self, topic: str) -> None:
        """It finds work when the lock is free. What a signal handler offers meanwhile waits for it too."""
        self._opener = threading.Thread(target=self._open, name="notifier-kafka-topics", daemon=True)
        try:
            self._opener.start()
        except RuntimeError as error:
            self._opener = None
            raise DeliveryFailed(f"topic {topic}: {error}") from None

    def _open(self) -> None:
        """Make the topics that records wait for; ends when there are none."""
        try:
            while (topic := self._next()) is not None:
                found = self._ensured(topic)
                if isinstance(found, int):
                    self._release(topic, found)
                elif not self._closed:
                    self._give_up(topic, errors.for_record(found))
        finally:
            with self._lock:
                # However it ends: as long as there is one, nobody starts another.
                if self._opener is threading.current_thread():
                    self._opener = None

    def _next(self) -> str | None:
        with self._lock:
            topic = None if self._closed else next(iter(self._waiting), None)
            if topic is None:
                # In the same breath, or what is offered now would wait for nobody.
                self._opener = None
            return topic

    def _ensured(self, topic: str) -> int | MessagingException:
        """Try as often as the limits say; return the number of partitions, or why it is in vain."""
        pause, tries = FIRST_PAUSE, 0
        while True:
            try:
                count = self._ensure(topic)
            except MessagingException as error:
                if self._closed or not errors.for_record(error).retriable or tries == self._limits.retry:
                    return error
                if self._limits.retry >= 0 and not (pause := min(pause, self._expire(topic, error))):
                    return error
                if not tries:
                    LOG.warning("Publishing to topic %s waits: %s", topic, error)
            except Exception as error:
                # A fault of the driver must cost its records only, and must be seen.
                LOG.exception("A client raised an error that it should have translated")
                return DeliveryFailed(f"the driver failed: {type(error).__name__}: {error}")
            else:
                if tries:
                    LOG.warning("Publishing to topic %s goes on", topic)
                return count
            tries += 1
            with self._lock:
                self._moved.wait_for(lambda: self._closed, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _release(self, topic: str, count: int) -> None:
        """Hand over what waits for a topic; what is offered meanwhile queues up behind."""
        while True:
            with self._lock:
                if self._closed:
                    return
                if not self._waiting[topic]:
                    del self._waiting[topic]
                    self._known[topic] = count
                    return
                record, on_settled, since = self._waiting[topic][0]
                refused: DeliveryFailed | None = None
                try:
                    if self._publisher is not None:
                        self._publisher.offer(self._place(record, count), on_settled)
                except DeliveryFailed as error:
                    refused = error
                # A client may take a while to see a topic that was made again.
                later = isinstance(refused, OutboxFull | errors.TopicGone)
                if not later:
                    self._take(topic)
            if later:
                time.sleep(ROOM_CHECK)
            elif refused is not None:
                self._settle((record, on_settled, since), refused)

    def _expire(self, topic: str, why: MessagingException) -> float:
        """Give up what has waited for too long; return for how long the next may wait, 0 for none."""
        self._give_up(topic, why, time.monotonic() - self._patience)
        with self._lock:
            waiting = self._waiting.get(topic)
            return waiting[0][2] + self._patience - time.monotonic() if waiting else 0.0

    def _give_up(self, topic: str, why: MessagingException, since: float = math.inf) -> None:
        """Give up what waits for a topic, or what waits since then or longer."""
        with self._lock:
            waiting = self._waiting.get(topic, ())
            lost = [self._take(topic) for _ in range(sum(entry[2] <= since for entry in waiting))]
            if not self._waiting.get(topic):
                self._waiting.pop(topic, None)
        for entry in lost:
            self._settle(entry, why)

    def _take(self, topic: str) -> _Waiting:
        entry = self._waiting[topic].popleft()
        _, value, key, _ = entry[0]
        self._held -= 1
        self._bytes -= (len(value) if value else 0) + (len(key) if key else 0)
        self._moved.notify_all()
        return entry

    def _settle(self, entry: _Waiting, why: MessagingException) -> None:
        record, on_settled, _ = entry
        try:
            if on_settled is None:
                self._on_failure(record, why)
            else:
                on_settled(why)
        except Exception:
            # The user's code on our thread: its error must not cost other records.
            LOG.exception("A callback for a failed record of topic %s raised", record.topic)

    def _report(self, record: Record, error: MessagingException) -> None:
        # A topic that was deleted is made again for those who publish next.
        self._known.pop(record.topic, None)
        self._on_failure(record, error)

    def _restore(self, topic: str) -> None:
        # It may have another number of partitions than it had.
        count = self._ensure(topic)
        if topic in self._known:
            self._known[topic] = count

    def _pass_on(self, topic: str, on_settled: OnSettled, outcome: Receipt | MessagingException) -> None:
        if isinstance(outcome, MessagingException):
            self._known.pop(topic, None)
        on_settled(outcome)


def abandon(thing: object) -> None:
    """Keep an object of a client library for ever.

    In a child process its threads are missing, and its destructor would wait for them.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
