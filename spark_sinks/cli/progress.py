"""A progress bar on a terminal: the batches that are counted, and the tasks that Spark reports."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

from notifier_kafka.cli.output import progress_bar
from spark_sinks.job.job import Job
from spark_sinks.job.run_report import RunProgress

REDRAW_SECONDS = 0.2


@contextlib.contextmanager
def show_progress(job: Job) -> Iterator[None]:
    """Draw a bar on stderr during a run, if stderr is a terminal."""
    if not progress_bar.is_drawn():
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


def describe_progress(progress: RunProgress, tasks: Sequence[tuple[int, int]]) -> tuple[float, str]:
    """Return how many records are done, and a text that says so, with the tasks of the running stages."""
    done, every = (sum(each) for each in zip((0, 0), *tasks, strict=True))
    # Spark reports the tasks of one stage of the current batch, not of all: so they count for half.
    within = progress.batch_records * done / every / 2 if every else 0
    stages = f", {done} of {every} tasks" if every else ""
    words = f"{progress.done:,} of {progress.total:,} records, batch {progress.batch}{stages}"
    return progress.done + within, words


def _draw(job: Job, drawn: progress_bar.Bar, ended: threading.Event) -> None:
    tracker = job.spark.sparkContext.statusTracker()
    while not ended.wait(REDRAW_SECONDS):
        if job.progress.total:
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = [(info.numCompletedTasks, info.numTasks) for info in infos if info]
            drawn.total = job.progress.total
            drawn.show(*describe_progress(job.progress, tasks))
