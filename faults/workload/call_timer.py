"""How long a call took, and how long its thread waited for a processor meanwhile."""

import os
import time


class CallTimer:
    """Times calls of the thread that makes it."""

    def __init__(self) -> None:
        # The second number: nanoseconds in the run queue of the kernel's scheduler.
        self._queue = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def start(self) -> None:
        self._before = self._waited()
        self._begun = time.perf_counter_ns()

    def read(self) -> tuple[float, float]:
        """Return seconds since the start without the time in the run queue, and that time."""
        took = time.perf_counter_ns() - self._begun
        queued = min(took, self._waited() - self._before)
        return (took - queued) / 1e9, queued / 1e9

    def _waited(self) -> int:
        return int(os.pread(self._queue, 100, 0).split()[1])
