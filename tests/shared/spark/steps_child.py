"""Merges files in processes that kill themselves before each renaming and removal in turn.

``steps_child.py ledger|output ORIGIN COPIES``: COPIES/N is ORIGIN, with the work on it killed
before its step N. The last one of them was not killed. Prints how many there are.
"""

import itertools
import os
import shutil
import signal
import sys
from pathlib import Path

from spark_sinks.outputs import compaction
from spark_sinks.state import ledger, segments

STEPS = ("os.rename", "os.remove", "os.rmdir")


def work(what: str, place: Path) -> None:
    if what == "output":
        compaction.compact(place)
    else:
        segments.MERGE_AFTER_BATCHES = 3
        segments.merge(ledger.Ledger(place), lambda _: sys.exit("no sketch is in there"), 3600.0)


def killed(what: str, place: Path, step: int) -> bool:
    child = os.fork()
    if not child:
        steps = itertools.count(1)

        def hook(event: str, _arguments: object) -> None:
            if event in STEPS and next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work(what, place)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status and os.WTERMSIG(status) != signal.SIGKILL:
        sys.exit(f"step {step} ended with {status}")
    return bool(status)


if __name__ == "__main__":
    what, origin, copies = sys.argv[1:]
    for step in itertools.count(1):
        place = Path(copies, str(step))
        shutil.copytree(origin, place)
        if not killed(what, place, step):
            print(step)
            break
