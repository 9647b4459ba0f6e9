"""The control of the measurements: ``python -m faults.workload.control FILE PROCESSOR``.

A process without any code of the product, bound to one processor. It repeats a small piece of
work, about as much as one publishing call. When it is late or slower than usual, the machine is
the cause: other processes, a hypervisor or the memory.
"""

import json
import os
import sys
import time

from faults.history import History
from faults.topology import end_with_parent
from faults.workload.call_timer import CallTimer

PAUSE_SECONDS = 0.01
CONTENT = {"id": "control", "numbers": list(range(200))}


def main(file: str, processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    history = History(file)
    timer = CallTimer()
    while True:
        due = time.monotonic() + PAUSE_SECONDS
        time.sleep(PAUSE_SECONDS)
        timer.start()
        json.loads(json.dumps(CONTENT))
        work, _ = timer.read()
        history.write("control", work_seconds=work, late=time.monotonic() - due)


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    main(sys.argv[1], int(sys.argv[2]))
