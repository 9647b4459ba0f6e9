"""Starts Spark the way that a job of ours needs it."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from notifier_kafka import java

# Results must not depend on where the driver runs, and nothing in a notification may end a
# batch: without ANSI a value that does not fit is null.
FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    # Of a name that stands twice the last counts, as in the codec.
    "spark.sql.variant.allowDuplicateKeys": "true",
    "spark.ui.showConsoleProgress": "false",
}
# What a user may set otherwise. A batch is a few short queries over and over: plans made anew
# after each stage, plans spelled out for a page that nobody sees and classes compiled anew
# because a hundred others came between are what would take most of its time. And a method of
# more than 8000 bytes of code is never compiled by a JVM, but interpreted for each record: a
# stage that would have one is made of smaller methods. What a batch keeps is looked at three
# times and then dropped: to find out how each column is packed best costs more than to read it.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}


@dataclass(frozen=True)
class Settings:
    """What a user may say about the session; ``extra`` are properties of Spark's own."""

    master: str = "local[*]"
    memory: str = "1g"
    shuffle_partitions: int | None = None
    jars: Sequence[Path] = ()
    java: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def start(settings: Settings) -> SparkSession:
    """Start a session, or raise ``DriverLoadFailure`` when there is no Java for it."""
    found = java.find(java.SPARK, settings.java)
    os.environ["JAVA_HOME"] = str(java.home_for_spark(found))
    # The workers of a local master run what runs here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = properties(settings)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Run by spark-submit: what that was told counts, the master first of all.
        made = {**made, **dict(SparkContext.getOrCreate().getConf().getAll()), **FIXED}
    builder = SparkSession.builder.appName("notifier-kafka")
    for name, value in made.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def properties(settings: Settings) -> dict[str, str]:
    """Make Spark's properties; the user's win, but not over what correctness needs."""
    local = settings.master.startswith("local")
    partitions = settings.shuffle_partitions or (os.cpu_count() or 1)
    made = {"spark.master": settings.master, "spark.driver.memory": settings.memory}
    made["spark.sql.shuffle.partitions"] = str(partitions)
    made |= settings.extra
    if settings.jars:
        theirs = [settings.extra["spark.jars"]] if "spark.jars" in settings.extra else []
        made["spark.jars"] = ",".join([*map(str, settings.jars), *theirs])
    return {**QUICK, **(LOCAL if local else {}), **made, **FIXED}
