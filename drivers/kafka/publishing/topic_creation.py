"""Publishing, whatever the client library: the size limit, creating topics on first use, fork.

A client's publisher is given records of topics that exist. Records of a topic that is not known yet wait
here, in order, while a thread creates it or finds that it exists.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from notifier_kafka.contract import after_fork, callbacks, threads
from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import Limits, OnFailure, OnSettled, Publisher, Receipt, Record
from notifier_kafka.contract.record_size import size_in_bytes
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException, OutboxFull

from .. import errors, naming
from .partitioning import Topics

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
ROOM_CHECK_SECONDS = 0.01

Make = Callable[[OnFailure, Callable[[str], None]], Publisher]

_Waiting = tuple[Record, OnSettled | None, float]
"""The last is the time since when it waits."""


def refuse_too_large(record: Record, size: int, largest: int) -> None:
    """Raise ``DeliveryFailed`` for a record that exceeds max_request_size."""
    if size > largest:
        raise DeliveryFailed(
            f"topic {record.topic}: a record of {size} bytes exceeds {largest}: "
            "raise [drivers_kafka] max_request_size or send less"
        )


class PublisherAwaitingTopics:
    """A ``Publisher`` in front of a client's own."""

    def __init__(
        self, make: Make, topics: Topics, on_failure: OnFailure, limits: Limits, bounds: tuple[int, float]
    ) -> None:
        """``bounds``: the largest record in bytes, and how many seconds one may wait for its topic."""
        self._make = make
        self._ensure, self._assign = topics
        self._on_failure = on_failure
        self._limits = limits
        self._largest, self._longest_wait = bounds
        self._closed = False
        self._publisher: Publisher | None = make(self._report, self._restore)
        self._start_empty()
        _FORKED.add(self)

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        size = size_in_bytes(record)
        if size > self._largest:
            refuse_too_large(record, size, self._largest)
        topic = record.topic
        if on_settled is not None:
            on_settled = partial(self._forget_failed_topic, topic, on_settled)
        count = self._known.get(topic)
        if count is not None and (publisher := self._publisher) is not None:
            try:
                publisher.offer(self._assign(record, count), on_settled)
            except errors.TopicGone:
                self._known.pop(topic, None)
            else:
                return
        self._wait_for_topic(record, on_settled, size)

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        with self._lock:
            while self._count and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            count, publisher = self._count, self._publisher
        return count + (publisher.flush(max(0.0, deadline - time.monotonic())) if publisher else 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            publisher = self._publisher
        # The topic creator may be in a call that takes seconds; after it there is nothing left to do.
        for topic in list(self._waiting):
            self._give_up(topic, DeliveryGivenUp("the publisher was closed before this record was sent"))
        if publisher is not None:
            publisher.close()

    def await_topic_creator(self) -> None:
        """Wait, after ``close``, until no request for a topic is under way."""
        creator = self._creator
        if creator and creator is not threading.current_thread():
            creator.join()

    def start_afresh(self) -> None:
        """Start from nothing in a child process: records under way, and the threads, are the parent's."""
        if self._publisher is not None:
            after_fork.never_free(self._publisher)
        self._publisher = None
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._known: dict[str, int] = {}
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._count = self._bytes = 0
        self._creator: threading.Thread | None = None

    def _wait_for_topic(self, record: Record, on_settled: OnSettled | None, size: int) -> None:
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
                self._publisher.offer(self._assign(record, count), on_settled)
                return
            if self._count >= self._limits.records or self._bytes + size > self._limits.bytes:
                raise OutboxFull(f"{self._count} records wait for their topics already: Kafka is away")
            if self._creator is None:
                self._start_creator(record.topic)
            self._waiting.setdefault(record.topic, deque()).append((record, on_settled, time.monotonic()))
            self._count += 1
            self._bytes += size

    def _start_creator(self, topic: str) -> None:
        """Start the thread. It looks for work once the lock is free, also what a signal handler offered."""
        self._creator = threading.Thread(
            target=self._create_topics, name="notifier-kafka-topics", daemon=True
        )
        try:
            threads.start_to_publish(self._creator, f"create topic {topic}")
        except DeliveryFailed:
            self._creator = None
            raise

    def _create_topics(self) -> None:
        """Create the topics that records wait for; ends when there are none."""
        try:
            while (topic := self._next_topic()) is not None:
                found = self._create_with_retries(topic)
                if isinstance(found, int):
                    self._release(topic, found)
                elif not self._closed:
                    self._give_up(topic, errors.for_record(found))
        finally:
            with self._lock:
                # However it ends: while there is a thread, no other is started.
                if self._creator is threading.current_thread():
                    self._creator = None

    def _next_topic(self) -> str | None:
        with self._lock:
            topic = None if self._closed else next(iter(self._waiting), None)
            if topic is None:
                # Under the same lock: a record that is offered now must start another thread.
                self._creator = None
            return topic

    def _create_with_retries(self, topic: str) -> int | MessagingException:
        """Retry as often as the limits say; return the number of partitions, or the error."""
        backoff, tries = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), 0
        while True:
            try:
                count = self._ensure(topic)
            except MessagingException as error:
                if self._closed or not errors.for_record(error).retriable or tries == self._limits.retry:
                    return error
                pause = backoff.pause()
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
                self._changed.wait_for(lambda: self._closed, pause)

    def _release(self, topic: str, count: int) -> None:
        """Hand over what waits for a topic; records that are offered meanwhile queue up behind."""
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
                        self._publisher.offer(self._assign(record, count), on_settled)
                except DeliveryFailed as error:
                    refused = error
                # A client may take a while to see a topic that was created again.
                later = isinstance(refused, OutboxFull | errors.TopicGone)
                if not later:
                    self._take(topic)
            if later:
                time.sleep(ROOM_CHECK_SECONDS)
            elif refused is not None:
                self._report_failure((record, on_settled, since), refused)

    def _expire(self, topic: str, why: MessagingException) -> float:
        """Give up what has waited for too long; return how long the next may wait, 0 without one."""
        self._give_up(topic, why, time.monotonic() - self._longest_wait)
        with self._lock:
            waiting = self._waiting.get(topic)
            return waiting[0][2] + self._longest_wait - time.monotonic() if waiting else 0.0

    def _give_up(self, topic: str, why: MessagingException, since: float = math.inf) -> None:
        """Give up all that waits for a topic, or what has waited since a time or longer."""
        with self._lock:
            waiting = self._waiting.get(topic, ())
            lost = [self._take(topic) for _ in range(sum(entry[2] <= since for entry in waiting))]
            if not self._waiting.get(topic):
                self._waiting.pop(topic, None)
        for entry in lost:
            self._report_failure(entry, why)

    def _take(self, topic: str) -> _Waiting:
        entry = self._waiting[topic].popleft()
        self._count -= 1
        self._bytes -= size_in_bytes(entry[0])
        self._changed.notify_all()
        return entry

    def _report_failure(self, entry: _Waiting, why: MessagingException) -> None:
        record, on_settled, _ = entry
        about = ("a failed record of topic", record.topic)
        if on_settled is None:
            callbacks.call(LOG, about, self._on_failure, record, why)
        else:
            callbacks.call(LOG, about, on_settled, why)

    def _report(self, record: Record, error: MessagingException) -> None:
        # A topic that was deleted is created again with the next record.
        self._known.pop(record.topic, None)
        self._on_failure(record, error)

    def _restore(self, topic: str) -> None:
        # It may have another number of partitions than before.
        count = self._ensure(topic)
        if topic in self._known:
            self._known[topic] = count

    def _forget_failed_topic(
        self, topic: str, on_settled: OnSettled, outcome: Receipt | MessagingException
    ) -> None:
        if isinstance(outcome, MessagingException):
            self._known.pop(topic, None)
        on_settled(outcome)
