"""The job for ``spark-submit``; its arguments are those of ``notifier-kafka aggregate``.

``python -m spark_sinks.submit`` prints what spark-submit needs to run it: the jars of the
connector, and this file. So::

    spark-submit --master spark://head:7077 $(python -m spark_sinks.submit) --topic notifications
"""

import os
import sys

from notifier_kafka import jars
from notifier_kafka.cli import main


def needed() -> list[str]:
    """Return the arguments of spark-submit that name this job."""
    fetched = ",".join(str(jar) for jar in jars.fetch(jars.SPARK_KAFKA))
    return ["--jars", fetched, os.path.abspath(__file__)]


def arguments(given: list[str]) -> list[str]:
    """Put the command before its own options, and behind those of the program."""
    before = 0
    while given[before : before + 1] == ["--config-file"]:
        before += 2
    return [*given[:before], "aggregate", *given[before:]]


if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        sys.exit(main.main(arguments(sys.argv[1:])))
    print(*needed())  # noqa: T201 - that is what it is for
