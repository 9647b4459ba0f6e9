"""A clock that another process can step by a signal, as an administrator steps the machine's.

The clock of the machine belongs to all processes. Monotonic clocks stay as they are: no system steps
them.
"""

import signal
import time

STEP_SECONDS = 3600.0
STEP_FORWARD, STEP_BACK = signal.SIGUSR1, signal.SIGUSR2


def make_steppable() -> None:
    """Let signals step the time of day that this process sees in Python."""
    seconds, nanoseconds = time.time, time.time_ns
    shift = 0.0

    def step(number: int, _frame: object) -> None:
        nonlocal shift
        shift += STEP_SECONDS if number == STEP_FORWARD else -STEP_SECONDS

    vars(time)["time"] = lambda: seconds() + shift
    vars(time)["time_ns"] = lambda: nanoseconds() + int(shift * 1e9)
    for number in (STEP_FORWARD, STEP_BACK):
        signal.signal(number, step)
