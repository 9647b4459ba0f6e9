"""How far a run is, on a terminal: by the batches that are counted and by Spark's own account."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence

from spark_sinks.job import Job
from spark_sinks.sums import Position

BEAT = 0.2
WIDTH = 24
ERASE = "\r\x1b[K"


@contextlib.contextmanager
def shown(job: Job) -> Iterator[None]:
    """Draw a bar on stderr while a run goes on; nothing where nobody looks."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    ended = threading.Event()
    drawing = threading.Thread(target=_draw, args=(job, ended), daemon=True)
    drawing.start()
    try:
        yield
    finally:
        ended.set()
        drawing.join()
        sys.stderr.write(ERASE)
        sys.stderr.flush()


def line(position: Position, tasks: Sequence[tuple[int, int]]) -> str:
    """Spell a position, and of each stage that runs how many of its tasks are done."""
    done, every = (sum(each) for each in zip((0, 0), *tasks, strict=True))
    # Of the batch at hand Spark tells the tasks of a stage, not of all stages: so it counts for half.
    within = position.batch_records * done / every / 2 if every else 0
    share = min(1.0, (position.done + within) / position.total) if position.total else 0.0
    full = round(WIDTH * share)
    words = f"{position.done:,} of {position.total:,} records, batch {position.batch}"
    stages = f", {done} of {every} tasks" if every else ""
    return f"{'█' * full}{'░' * (WIDTH - full)} {share:4.0%}  {words}{stages}"


def _draw(job: Job, ended: threading.Event) -> None:
    tracker = job.spark.sparkContext.statusTracker()
    while not ended.wait(BEAT):
        if job.position.total:
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = [(info.numCompletedTasks, info.numTasks) for info in infos if info]
            sys.stderr.write(ERASE + line(job.position, tasks))
            sys.stderr.flush()
