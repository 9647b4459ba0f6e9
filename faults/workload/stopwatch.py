"""How long something took, and how long of that its thread had no processor."""

import os
import time


class Stopwatch:
    """For the thread that makes it."""

    def __init__(self) -> None:
        # The second number is nanoseconds in the queue for a processor, of the kernel's scheduler.
        self._queue = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def start(self) -> None:
        self._before = self._waited()
        self._begun = time.perf_counter_ns()

    def read(self) -> tuple[float, float]:
        """Return seconds since the start: those without the time in the queue, and that time."""
        took = time.perf_counter_ns() - self._begun
        queued = min(took, self._waited() - self._before)
        return (took - queued) / 1e9, queued / 1e9

    def _waited(self) -> int:
        return int(os.pread(self._queue, 100, 0).split()[1])
