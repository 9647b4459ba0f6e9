"""Counts of what happened, and a log that stays readable while things go wrong."""

import collections
import contextlib
import logging
import threading
import time

from notifier_kafka.contract import after_fork

_FORKED = after_fork.renewed()

INTERVAL = 10.0  # seconds between two lines about losses


class Counters:
    """Counts events by name. Losses are logged too, at most once in an interval."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: collections.Counter[str] = collections.Counter()
        self._example = ""
        self._next_report = 0.0
        self.start_afresh()
        _FORKED.add(self)

    def start_afresh(self) -> None:
        """Forget, in a child process, whom the parent is about to tell of what; it goes on counting."""
        # Reentrant: a signal handler may publish while its thread is in here.
        self._lock = threading.RLock()
        self._unreported: collections.Counter[str] = collections.Counter()
        self._later: threading.Timer | None = None

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            self._counts[name] += count

    def lose(self, reason: str, example: str, count: int = 1) -> None:
        """Count notifications lost and see to it that the log says so."""
        with self._lock:
            self._counts[f"lost.{reason}"] += count
            self._unreported[reason] += count
            self._example = example
            wait = self._next_report - time.monotonic()
            if wait > 0:
                self._report_in(wait)
        if wait <= 0:
            self.report()

    def report(self) -> None:
        """Log the losses that no line has told of yet."""
        with self._lock:
            news, self._unreported = self._unreported, collections.Counter()
            self._next_report = time.monotonic() + INTERVAL
            later, self._later = self._later, None
        if later is not None:
            later.cancel()
        if news:
            reasons = ", ".join(f"{count} {reason}" for reason, count in news.items())
            self._log.error("Notifications were lost: %s; the last: %s", reasons, self._example)

    def _report_in(self, seconds: float) -> None:
        # This loss may be the last one for hours.
        if self._later is None or not self._later.is_alive():
            self._later = threading.Timer(seconds, self.report)
            self._later.daemon = True
            # No thread to be had, as at the interpreter's exit: cleaning up reports.
            with contextlib.suppress(RuntimeError):
                self._later.start()

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)
