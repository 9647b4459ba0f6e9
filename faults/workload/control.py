"""The control of the measurements: ``python -m faults.workload.control FILE PROCESSOR``.

A process that has nothing to do with the product, bound to a processor. It does the same little
work again and again, about as much as a call of a publisher. What it is late, or takes longer
than usual, is the machine's doing: others have the processor, or a hypervisor has, or memory.
"""

import json
import os
import sys
import time

from faults.history import Journal
from faults.topology import end_with_parent
from faults.workload.stopwatch import Stopwatch

PAUSE = 0.01
CONTENT = {"id": "control", "numbers": list(range(200))}


def main(file: str, processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    journal = Journal(file)
    watch = Stopwatch()
    while True:
        due = time.monotonic() + PAUSE
        time.sleep(PAUSE)
        watch.start()
        json.loads(json.dumps(CONTENT))
        work, _ = watch.read()
        journal.write("control", work=work, late=time.monotonic() - due)


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    main(sys.argv[1], int(sys.argv[2]))
