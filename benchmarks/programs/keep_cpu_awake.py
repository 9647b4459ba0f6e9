"""Keeps a processor from falling asleep, and gives way to everybody: ``awake NUMBER``.

A virtual processor that slept is given back late and with cold caches. What a call costs after
that is the machine's doing; the processors of a service at work do not sleep.
"""

import os
import sys
import threading

from benchmarks import child_protocol


def main(number: int) -> None:
    os.sched_setaffinity(0, {number})
    # Of this class a process runs only where nobody else wants to.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    threading.Thread(target=_spin, daemon=True).start()
    child_protocol.serve()


def _spin() -> None:
    while True:
        pass


main(int(sys.argv[1]))
