"""confluent-kafka behind the seam: what a producer leaves to the one that goes on in its place."""

import operator
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError

from notifier_kafka.driver import OnSettled, Record
from notifier_kafka.errors import OutboxFull

GRACE = 2.0  # seconds for the old producer's reports
LOOK = 0.05
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # noqa: SLF001 - their public names

Entry = tuple[int, Record, OnSettled | None]
"""A record with its number in the order of offers, and who is told of it."""
_NUMBER: Callable[[Entry], int] = operator.itemgetter(0)


class Takeover:
    """Holds records in their order: what the old producer gives back, then what is offered meanwhile."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._over = False
        self._returned: deque[Entry] = deque()
        self._offered: deque[Entry] = deque()

    def put_aside(self, entry: Entry) -> bool:
        """Keep what is offered now; False when that may go to the new producer itself."""
        with self._lock:
            if self._over:
                return False
            if len(self._offered) >= self._limit:
                raise OutboxFull(f"{self._limit} records wait for a new producer already")
            self._offered.append(entry)
            return True

    def take_back(self, error: KafkaError, entry: Entry) -> bool:
        """Keep what the old producer reports as purged; False for what it reports otherwise."""
        if error.code() not in PURGED:
            return False
        with self._lock:
            if self._over:
                return False
            self._returned.append(entry)
            return True

    def empty(self, old: Any) -> None:
        """Have the old producer give back what it holds."""
        old.purge()
        old.flush(GRACE)
        time.sleep(LOOK)

    def hand_over(self, take: Callable[[Entry], None]) -> None:
        """Hand over all there is, until nothing is left and offers need not be put aside."""
        with self._lock:
            # What was on the way and what waited are given back one behind the other.
            self._returned = deque(sorted(self._returned, key=_NUMBER))
        while (entry := self._next()) is not None:
            take(entry)

    def _next(self) -> Entry | None:
        with self._lock:
            if self._returned:
                return self._returned.popleft()
            if self._offered:
                return self._offered.popleft()
            self._over = True
            return None
