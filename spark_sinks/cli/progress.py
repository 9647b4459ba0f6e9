"""How far a run is, on a terminal: by the batches that are counted and by Spark's own account."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

from notifier_kafka.cli.output import progress_bar
from spark_sinks.job.job import Job
from spark_sinks.job.run_report import RunProgress

REDRAW_SECONDS = 0.2


@contextlib.contextmanager
def show_progress(job: Job) -> Iterator[None]:
    """Draw a bar on stderr while a run goes on; nothing where nobody looks."""
    if not progress_bar.drawn():
        yield
        return
    ended = threading.Event()
    drawn = progress_bar.Bar("aggregate")
    drawing = threading.Thread(target=_draw, args=(job, drawn, ended), daemon=True)
    drawing.start()
    try:
        yield
    finally:
        ended.set()
        drawing.join()
        drawn.erase()


def describe_progress(position: RunProgress, tasks: Sequence[tuple[int, int]]) -> tuple[float, str]:
    """Say how many records are done, and spell it, with how many tasks of each stage that runs are."""
    done, every = (sum(each) for each in zip((0, 0), *tasks, strict=True))
    # Of the batch at hand Spark tells the tasks of a stage, not of all stages: so it counts for half.
    within = position.batch_records * done / every / 2 if every else 0
    stages = f", {done} of {every} tasks" if every else ""
    words = f"{position.done:,} of {position.total:,} records, batch {position.batch}{stages}"
    return position.done + within, words


def _draw(job: Job, drawn: progress_bar.Bar, ended: threading.Event) -> None:
    tracker = job.spark.sparkContext.statusTracker()
    while not ended.wait(REDRAW_SECONDS):
        if job.position.total:
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = [(info.numCompletedTasks, info.numTasks) for info in infos if info]
            drawn.total = job.position.total
            drawn.show(*describe_progress(job.position, tasks))
