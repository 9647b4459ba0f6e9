"""Counts of what happened, and a log that stays readable while things go wrong."""

import collections
import logging
import threading
import time

INTERVAL = 10.0  # seconds between two lines about losses


class Accounts:
    """Counts events by name. Losses are logged too, at most once in an interval."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()
        self._unreported: collections.Counter[str] = collections.Counter()
        self._example = ""
        self._next_report = 0.0

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            self._counts[name] += count

    def lose(self, reason: str, example: str) -> None:
        """Count one notification lost and see to it that the log says so."""
        with self._lock:
            self._counts[f"lost.{reason}"] += 1
            self._unreported[reason] += 1
            self._example = example
        if time.monotonic() >= self._next_report:
            self.report()

    def report(self) -> None:
        """Log the losses that no line has told of yet."""
        with self._lock:
            news, self._unreported = self._unreported, collections.Counter()
            self._next_report = time.monotonic() + INTERVAL
        if news:
            reasons = ", ".join(f"{count} {reason}" for reason, count in news.items())
            self._log.error("Notifications were lost: %s; the last: %s", reasons, self._example)

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)
