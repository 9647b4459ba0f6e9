"""A clock that another process can step, as an administrator steps the machine's.

The machine's own would be everybody's. What measures durations is left alone: that is
what the system promises of it.
"""

import signal
import time

STEP = 3600.0
FORWARD, BACK = signal.SIGUSR1, signal.SIGUSR2


def make_steppable() -> None:
    """Let signals step what this process's Python takes for the time."""
    seconds, nanoseconds = time.time, time.time_ns
    shift = 0.0

    def step(number: int, _frame: object) -> None:
        nonlocal shift
        shift += STEP if number == FORWARD else -STEP

    vars(time)["time"] = lambda: seconds() + shift
    vars(time)["time_ns"] = lambda: nanoseconds() + int(shift * 1e9)
    for number in (FORWARD, BACK):
        signal.signal(number, step)
