"""The job for ``spark-submit``; its arguments are those of ``notifier-kafka aggregate``.

``python -m spark_sinks.submit`` prints what spark-submit needs to run it: the jars of the
connector, and this file. So::

    spark-submit --master spark://head:7077 $(python -m spark_sinks.submit) --topic notifications

With ``--config-file`` it reads ``[spark_sinks] java``: the Java that fetches the jars if they are missing.
"""

import os
import sys

from notifier_kafka.cli import error_report, installed_options, jar_download, main
from notifier_kafka.errors import MessagingException
from notifier_kafka.jvm import jars


def needed(given: list[str]) -> list[str]:
    """Return the arguments of spark-submit that name this job; ``given`` are options of the program."""
    program = main.App()
    program.options = program.parser.parse_args(given)
    java_option = installed_options.java_option(program.configuration(), "spark_sinks")
    fetched = ",".join(map(str, jar_download.fetch(jars.spark_kafka(), java_option)))
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
    try:
        print(*needed(sys.argv[1:]))  # noqa: T201 - its output is for a shell
    except MessagingException as error:
        sys.exit(error_report.report(error, str, debug=False))
