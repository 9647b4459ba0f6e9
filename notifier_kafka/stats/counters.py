"""Counts of events, and a log that stays readable while things go wrong."""

import collections
import contextlib
import logging
import threading
import time

from notifier_kafka.contract import after_fork, threads
from notifier_kafka.errors import MessagingException

LOG_INTERVAL_SECONDS = 10.0  # between two lines about losses
LOST_PREFIX = "lost."

_FORKED = after_fork.renewed()


class Counters:
    """Counts events by name. Losses are also logged, at most once in an interval."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._counts: collections.Counter[str] = collections.Counter()
        self._example = ""
        self._next_report = 0.0
        self.start_afresh()
        _FORKED.add(self)

    def start_afresh(self) -> None:
        """Forget, in a child process, the losses that the parent is about to log. Counts go on."""
        # Reentrant: a signal handler may publish while its thread is in here.
        self._lock = threading.RLock()
        self._unreported: collections.Counter[str] = collections.Counter()
        self._later: threading.Timer | None = None

    def add(self, name: str, count: int = 1) -> None:
        with self._lock:
            self._counts[name] += count

    def lose(self, reason: str, example: str, count: int = 1) -> None:
        """Count lost notifications, and log them now or when the interval is over."""
        with self._lock:
            self._counts[LOST_PREFIX + reason] += count
            self._unreported[reason] += count
            self._example = example
            wait = self._next_report - time.monotonic()
            if wait > 0:
                self._report_in(wait)
        if wait <= 0:
            self.report()

    def report(self) -> None:
        """Log the losses that were not logged yet."""
        with self._lock:
            news, self._unreported = self._unreported, collections.Counter()
            self._next_report = time.monotonic() + LOG_INTERVAL_SECONDS
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
            # Without a thread, as at the interpreter's exit, the clean-up reports.
            with contextlib.suppress(MessagingException):
                threads.start(self._later, "report losses from")

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)

    def lost(self) -> dict[str, int]:
        """Return how many notifications were lost, by reason."""
        return {
            name.removeprefix(LOST_PREFIX): count
            for name, count in self.counts().items()
            if name.startswith(LOST_PREFIX)
        }
