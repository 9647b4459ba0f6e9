"""Keeps a processor busy at idle priority: ``keep_cpu_awake NUMBER``.

A virtual processor that was idle comes back late and with cold caches, which would show as the
cost of a call. The processors of a busy service are not idle.
"""

import os
import sys
import threading

from benchmarks import child_protocol


def main(number: int) -> None:
    os.sched_setaffinity(0, {number})
    # Such a process runs only when no other one wants the processor.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    threading.Thread(target=_spin, daemon=True).start()
    child_protocol.serve()


def _spin() -> None:
    while True:
        pass


main(int(sys.argv[1]))
