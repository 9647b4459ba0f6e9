"""What a person sees of Spark: its errors, and how far it is, in a line."""

import pytest
from py4j.protocol import Py4JError

from notifier_kafka.cli.output import progress_bar
from notifier_kafka.errors import LogUnusable, TransportUnavailable
from spark_sinks.cli import progress
from spark_sinks.engine import spark_errors
from spark_sinks.job.run_report import RunProgress

JAVAS = """An error occurred while calling o1.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
\tat org.apache.spark.scheduler.DAGScheduler.x(DAGScheduler.scala:2935)
Caused by: java.util.concurrent.ExecutionException: no
\tat java.base/x.y(Z.java:1)
\t... 23 more
Caused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired
\tat org.apache.kafka.x(Y.java:2)
"""
PYTHONS = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/driver_source.py", line 67, in read
    lent = transport.get_notification_transport(conf)
           ^^^^^^^^^^^^^^^^^^^^^^
notifier_kafka.errors.LogUnusable: the file is not a database
"""


@pytest.mark.parametrize(
    ("said", "kind", "brief"),
    [
        (JAVAS, TransportUnavailable, "TimeoutException: Timeout of 60000ms expired"),
        (PYTHONS, LogUnusable, "LogUnusable: the file is not a database"),
        ("[ERROR] no such thing", LogUnusable, "[ERROR] no such thing"),
        ("", LogUnusable, "Py4JError"),
        ("x\n" * 900, LogUnusable, ("x " * 150)),
    ],
)
def test_one_line_says_the_cause(said: str, kind: type[Exception], brief: str) -> None:
    made = spark_errors.translate(Py4JError(said), 7)
    assert type(made) is kind
    assert str(made) == f"Spark: {brief}; the next run repeats batch 7"


@pytest.mark.parametrize(
    ("position", "tasks", "said"),
    [
        (RunProgress(0, 2000, 1, 1000), [], "░" * 30 + " 0 of 2,000 records, batch 1"),
        (
            RunProgress(1000, 2000, 2, 1000),
            [(1, 2), (3, 6)],
            "█" * 18 + "░" * 12 + " 1,000 of 2,000 records, batch 2, 4 of 8 tasks",
        ),
        (
            RunProgress(2000, 2000, 2, 1000),
            [(2, 2)],
            "█" * 30 + " 2,000 of 2,000 records, batch 2, 2 of 2 tasks",
        ),
    ],
)
def test_a_bar(position: RunProgress, tasks: list[tuple[int, int]], said: str) -> None:
    done, words = progress.describe_progress(position, tasks)
    assert progress_bar.format_line("aggregate", done, position.total, words) == f"aggregate  {said}"
