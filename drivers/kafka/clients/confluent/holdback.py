"""confluent-kafka behind the seam: what waits in front of a producer.

It waits for a new one, with what the old one holds; or a moment, for a producer that hears nothing.
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

from .connection import SUSPICIOUS
from .in_flight import Entry, size_of

MUTE = 0.25  # seconds without a report, and until what waits is handed over
GRACE = 2.0  # seconds for the old producer's reports
LOOK = 0.05
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # noqa: SLF001 - their public names
PART = 4  # of the bytes of an outbox may wait for a producer that hears nothing

Produce = Callable[[Entry], None]
"""Gives a record to a producer, or raises: ``OutboxFull`` when it is for later."""
Fail = Callable[[Entry, MessagingException], None]
_NUMBER: Callable[[Entry], int] = operator.attrgetter("number")


class Front:
    """Holds records in their order: what an old producer gives back, then what is offered meanwhile."""

    def __init__(self, config: Mapping[str, Any], produce: Produce, fail: Fail) -> None:
        # Text from those who give librdkafka's own properties, and 0 there is no bound.
        self._records = int(config["queue.buffering.max.messages"]) or sys.maxsize
        self._room = int(config["queue.buffering.max.kbytes"]) * 1024
        # One that gives up after a time counts that from when librdkafka takes the record.
        endless = config["delivery.timeout.ms"] == "0"
        self._gathers = endless and config["enable.idempotence"] == "true"
        self._patience = MUTE + float(config["linger.ms"]) / 1000
        self._spare, self._most = self._records, self._room
        self._produce, self._fail = produce, fail
        # A signal handler may offer something in the middle of an offer: so no offer hands over, and none
        # waits for who does. Who has the turn may take the lock; who may have the lock waits a while only.
        self._lock, self._turn = threading.RLock(), threading.RLock()
        self._returned: deque[Entry] = deque()
        self._offered: deque[Entry] = deque()
        self._bytes_in = self._bytes_out = 0
        self._due, self._quiet_since = 0.0, time.monotonic()
        self._ready = False
        self.active = False
        """Whether offers are put aside."""

    def __len__(self) -> int:
        return len(self._returned) + len(self._offered)

    def put_aside(self, entry: Entry) -> bool:
        """Keep what is offered now; False when that may go to the producer itself."""
        size = size_of(entry)
        with self._lock:
            if not self.active:
                return False
            full = len(self._offered) >= self._spare or self._bytes_in - self._bytes_out >= self._most
            # The last as librdkafka would say for ever.
            if full or size > self._room:
                raise OutboxFull(f"{len(self)} records wait for a producer already")
            self._offered.append(entry)
            self._bytes_in += size
            # A signal handler may have closed the publisher since we looked: its thread looks once more.
            self.active = True
            return True

    def look(self, held: int, *, heard: bool, connected: bool) -> float:
        """Return for how many seconds a producer that holds so many has reported nothing."""
        now = time.monotonic()
        if heard or not held:
            self._quiet_since = now
        quiet = now - self._quiet_since
        self.gather(quiet if connected else 0.0, held)
        if quiet >= SUSPICIOUS:
            self._quiet_since = now
        return quiet

    def gather(self, quiet: float, held: int) -> None:
        """Put offers aside, and hand them over together, for a producer that hears nothing.

        Behind a request that no broker answers the threads of an idempotent librdkafka do not sleep, and
        a call waits for the lock of one that has lost its processor: 3 ms, one time in a hundred.
        """
        mute, now = self._gathers and self._patience <= quiet < SUSPICIOUS, time.monotonic()
        if self.active and self._ready and (not mute or now >= self._due):
            held += len(self)
            self.hand_over()
        if mute and not self.active:
            self._spare, self._most = self._records - held, self._room // PART
            self._due, self._ready, self.active = now + MUTE, True, True

    def stand_in(self, held: int) -> None:
        """Put all aside for a new producer, which is to have what the old one holds as well."""
        with self._lock:
            self._spare, self._most = self._records - held - len(self._returned), self._room
            self._ready, self.active = False, True

    def take_back(self, error: KafkaError, entry: Entry) -> bool:
        """Keep what the old producer reports as purged; False for what it reports otherwise."""
        if error.code() not in PURGED:
            return False
        with self._lock:
            if self.active:
                self._returned.append(entry)
            return self.active

    def empty(self, old: Any) -> None:
        """Have the old producer give back what it holds."""
        old.purge()
        old.flush(GRACE)
        time.sleep(LOOK)

    def hand_over(self) -> None:
        """Hand over what there is room for. When that is all, offers are not put aside any more.

        For the thread that serves the reports, and for who closes.
        """
        if not self._turn.acquire(timeout=GRACE):
            return
        try:
            with self._lock:
                # What was on the way and what waited are given back one behind the other.
                self._returned = deque(sorted(self._returned, key=_NUMBER))
            self._ready = True
            while self.active and self._ready:
                self._pass_on()
        except OutboxFull:
            # Nor is there any for more.
            self._spare = 0
        finally:
            self._turn.release()

    def _pass_on(self) -> None:
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

    def _removed(self, queue: deque[Entry]) -> Entry:
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
