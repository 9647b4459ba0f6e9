"""Starts Spark the way that a job of ours needs it."""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from notifier_kafka.errors import ConfigurationError
from notifier_kafka.jvm import java

# Results must not depend on where the driver runs, and nothing in a notification may end a
# batch: without ANSI a value that does not fit is null.
REQUIRED_PROPERTIES = {
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
SPEED_DEFAULTS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
LOCAL_MASTER_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Every user of the machine reaches these ports. For a local master Spark makes a secret by itself.
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}


@dataclass(frozen=True)
class SessionSettings:
    """What a user may say about the session; ``extra`` are properties of Spark's own."""

    master: str = "local[*]"
    memory: str = "1g"
    shuffle_partitions: int | None = None
    jars: Sequence[Path] = ()
    java: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def start(settings: SessionSettings) -> SparkSession:
    """Start a session, or raise ``DriverLoadFailure`` when there is no Java for it."""
    found = java.find(java.SPARK, settings.java)
    os.environ["JAVA_HOME"] = str(java.home_for_spark(found))
    # The workers of a local master run what runs here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = properties(settings)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Run by spark-submit: what that was told counts, the master first of all.
        made = {**made, **dict(SparkContext.getOrCreate().getConf().getAll()), **REQUIRED_PROPERTIES}
    elif SparkContext._gateway is None:  # noqa: SLF001 - no other way to ask
        _launch(made)
    builder = SparkSession.builder.appName("notifier-kafka")
    for name, value in made.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def _launch(made: Mapping[str, str]) -> None:
    """Start the JVM with properties that nobody reads in the list of processes.

    By itself PySpark puts each on the command line of spark-submit, keys of a store included.
    They have to be there when it starts: it looks for jars by them, and sizes the JVM.
    """
    given = os.environ.get("PYSPARK_SUBMIT_ARGS")
    if "--properties-file" in (given or ""):
        raise ConfigurationError(
            "PYSPARK_SUBMIT_ARGS names a --properties-file, and there can be one only: "
            "put what it says into [spark_sinks] spark_properties, or into spark-defaults.conf"
        )
    # Made for its owner alone.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".properties") as file:
        file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in made.items())
        file.flush()
        own = f"--properties-file {shlex.quote(file.name)} --load-spark-defaults"
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{own} {given or 'pyspark-shell'}"
        try:
            SparkContext._ensure_initialized()  # noqa: SLF001 - nor to have the JVM before its context
        finally:
            os.environ.pop("PYSPARK_SUBMIT_ARGS")
            if given is not None:
                os.environ["PYSPARK_SUBMIT_ARGS"] = given


def _escaped(text: str) -> str:
    """Spell what would end a name or a value in a file of properties, or begin a remark."""
    return re.sub(r"[\s\\=:#!]", lambda found: f"\\u{ord(found[0]):04x}", text)


def properties(settings: SessionSettings) -> dict[str, str]:
    """Make Spark's properties; the user's win, but not over what correctness needs."""
    partitions = settings.shuffle_partitions or (os.cpu_count() or 1)
    made = {"spark.master": settings.master, "spark.driver.memory": settings.memory}
    made["spark.sql.shuffle.partitions"] = str(partitions)
    made |= settings.extra
    if settings.jars:
        theirs = [settings.extra["spark.jars"]] if "spark.jars" in settings.extra else []
        made["spark.jars"] = ",".join([*map(str, settings.jars), *theirs])
    local = re.fullmatch(r"local(\[.*\])?", made["spark.master"])
    return {**SPEED_DEFAULTS, **(LOCAL_MASTER_DEFAULTS if local else {}), **made, **REQUIRED_PROPERTIES}
