"""Records that are held back before they are given to a producer of confluent-kafka.

They wait for a new producer, together with what the old one had; or for a moment, while a producer gets
no answer from its brokers.
"""

import operator
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError

from notifier_kafka.errors import MessagingException, OutboxFull

from .connection import SUSPICIOUS_SECONDS
from .in_flight import InFlight, size_of

MUTE_SECONDS = 0.25  # without a report, after which records are held back; and for so long
FLUSH_TIMEOUT_SECONDS = 2.0  # for the old producer's reports
CHECK_SECONDS = 0.05
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # noqa: SLF001 - their public names
MUTE_SHARE = 4  # a quarter of the outbox's bytes may wait for a producer that gets no answer

Produce = Callable[[InFlight], None]
"""Gives a record to a producer, or raises; ``OutboxFull`` when it must be tried again later."""
Fail = Callable[[InFlight, MessagingException], None]
_NUMBER: Callable[[InFlight], int] = operator.attrgetter("number")


class HoldbackQueue:
    """A queue in the order of offers: what an old producer gives back, then what is offered meanwhile."""

    def __init__(self, config: Mapping[str, Any], produce: Produce, fail: Fail) -> None:
        # Text when the user gave librdkafka's own properties; 0 there is no limit.
        self._records = int(config["queue.buffering.max.messages"]) or sys.maxsize
        self._room = int(config["queue.buffering.max.kbytes"]) * 1024
        # Not with a delivery timeout: librdkafka counts that from the moment it gets the record.
        endless = config["delivery.timeout.ms"] == "0"
        self._gathers = endless and config["enable.idempotence"] == "true"
        self._mute_after = MUTE_SECONDS + float(config["linger.ms"]) / 1000
        self._spare, self._most = self._records, self._room
        self._produce, self._fail = produce, fail
        # A signal handler may offer a record in the middle of an offer: so no offer releases records, and
        # none waits for a release. A release holds the turn and may take the lock; a thread that may
        # hold the lock waits for the turn with a timeout only.
        self._lock, self._turn = threading.RLock(), threading.RLock()
        self._returned: deque[InFlight] = deque()
        self._offered: deque[InFlight] = deque()
        self._bytes_in = self._bytes_out = 0
        self._due, self._quiet_since = 0.0, time.monotonic()
        self._ready = False
        self.active = False
        """Whether offers are held back."""

    def __len__(self) -> int:
        return len(self._returned) + len(self._offered)

    def hold_back(self, entry: InFlight) -> bool:
        """Keep a record; False when it may go to the producer directly."""
        size = size_of(entry)
        with self._lock:
            if not self.active:
                return False
            full = len(self._offered) >= self._spare or self._bytes_in - self._bytes_out >= self._most
            # A record larger than all the room would be refused by librdkafka for ever.
            if full or size > self._room:
                raise OutboxFull(f"{len(self)} records wait for a producer already")
            self._offered.append(entry)
            self._bytes_in += size
            # A signal handler may have closed the publisher meanwhile: then its thread releases once more.
            self.active = True
            return True

    def check(self, held: int, *, heard: bool, connected: bool) -> float:
        """Return for how many seconds a producer with ``held`` records has reported nothing."""
        now = time.monotonic()
        if heard or not held:
            self._quiet_since = now
        quiet = now - self._quiet_since
        self.gather(quiet if connected else 0.0, held)
        if quiet >= SUSPICIOUS_SECONDS:
            self._quiet_since = now
        return quiet

    def gather(self, quiet: float, held: int) -> None:
        """Hold offers back and release them together, for a producer that gets no answer.

        While a request is not answered, the threads of an idempotent librdkafka do not sleep. A call then
        may wait for the lock of a thread that lost its processor: 3 ms, one time in a hundred.
        """
        mute, now = self._gathers and self._mute_after <= quiet < SUSPICIOUS_SECONDS, time.monotonic()
        if self.active and self._ready and (not mute or now >= self._due):
            held += len(self)
            self.release()
        if mute and not self.active:
            self._spare, self._most = self._records - held, self._room // MUTE_SHARE
            self._due, self._ready, self.active = now + MUTE_SECONDS, True, True

    def hold_for_new_producer(self, held: int) -> None:
        """Hold all offers back for a new producer, which also gets what the old one has."""
        with self._lock:
            self._spare, self._most = self._records - held - len(self._returned), self._room
            self._ready, self.active = False, True

    def take_back(self, error: KafkaError, entry: InFlight) -> bool:
        """Keep a record that the old producer reports as purged; False for another report."""
        if error.code() not in PURGED:
            return False
        with self._lock:
            if self.active:
                self._returned.append(entry)
            return self.active

    def purge(self, old: Any) -> None:
        """Have the old producer give back what it has."""
        old.purge()
        old.flush(FLUSH_TIMEOUT_SECONDS)
        time.sleep(CHECK_SECONDS)

    def release(self) -> None:
        """Give the producer what it has room for. When that is all, offers are not held back any more.

        Called by the thread that serves the reports, and by ``close``.
        """
        if not self._turn.acquire(timeout=FLUSH_TIMEOUT_SECONDS):
            return
        try:
            with self._lock:
                # The old producer gives back what was in flight and what waited separately.
                self._returned = deque(sorted(self._returned, key=_NUMBER))
            self._ready = True
            while self.active and self._ready:
                self._release_next()
        except OutboxFull:
            # There is no room for more offers either.
            self._spare = 0
        finally:
            self._turn.release()

    def _release_next(self) -> None:
        queue = self._returned or self._offered
        if not queue:
            self._end()
            return
        try:
            self._produce(queue[0])
        except OutboxFull:
            raise
        except MessagingException as error:
            self._fail(self._removed(queue), error)
        else:
            self._removed(queue)

    def _removed(self, queue: deque[InFlight]) -> InFlight:
        entry = queue.popleft()
        if queue is self._offered:
            self._bytes_out += size_of(entry)
            self._spare -= 1
        return entry

    def _end(self) -> None:
        with self._lock:
            if self._ready and not len(self):
                self._bytes_in = self._bytes_out = 0
                self.active = False
