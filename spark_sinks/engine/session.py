"""Starts a Spark session with the properties that a job needs."""

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

# Results must not depend on where the driver runs, and no notification may fail a batch: without
# ANSI mode a value that does not fit is null.
REQUIRED_PROPERTIES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    # The last of several equal names wins, as in the codec.
    "spark.sql.variant.allowDuplicateKeys": "true",
    "spark.ui.showConsoleProgress": "false",
}
# Users may override these. A batch repeats a few short queries. Most of its time would go to
# planning again after each stage, to printing plans for a page that nobody reads, and to compiling
# classes again after a hundred others. A JVM never compiles a method of more than 8000 bytes, but
# interprets it for each record: Spark splits a stage that would have one. What a batch persists is
# read three times and dropped: choosing a compression for each column costs more than it saves.
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
    # Every user of the machine can reach these ports. With a local master Spark makes the secret itself.
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}


@dataclass(frozen=True)
class SessionSettings:
    """The user's settings of a session. ``extra`` are other properties of Spark."""

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
    # Workers of a local master use this Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = properties(settings)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # Run by spark-submit: its own settings win, above all the master.
        made = {**made, **dict(SparkContext.getOrCreate().getConf().getAll()), **REQUIRED_PROPERTIES}
    elif SparkContext._gateway is None:  # noqa: SLF001 - there is no public way
        _launch(made)
    builder = SparkSession.builder.appName("notifier-kafka")
    for name, value in made.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def _launch(made: Mapping[str, str]) -> None:
    """Start the JVM with a file of properties, which may hold secrets.

    PySpark itself would put them on a command line, where every user can read them. They are
    needed at the start: they name jars and the size of the JVM.
    """
    given = os.environ.get("PYSPARK_SUBMIT_ARGS")
    if "--properties-file" in (given or ""):
        raise ConfigurationError(
            "PYSPARK_SUBMIT_ARGS names a --properties-file, and there can be only one: "
            "put what it says into [spark_sinks] spark_properties, or into spark-defaults.conf"
        )
    # Only the owner can read it.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".properties") as file:
        file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in made.items())
        file.flush()
        own = f"--properties-file {shlex.quote(file.name)} --load-spark-defaults"
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{own} {given or 'pyspark-shell'}"
        try:
            SparkContext._ensure_initialized()  # noqa: SLF001 - there is no public way
        finally:
            os.environ.pop("PYSPARK_SUBMIT_ARGS")
            if given is not None:
                os.environ["PYSPARK_SUBMIT_ARGS"] = given


def _escaped(text: str) -> str:
    """Escape the special characters of a properties file."""
    return re.sub(r"[\s\\=:#!]", lambda found: f"\\u{ord(found[0]):04x}", text)


def properties(settings: SessionSettings) -> dict[str, str]:
    """Combine Spark's properties. The user's win, except over those that correctness needs."""
    partitions = settings.shuffle_partitions or (os.cpu_count() or 1)
    made = {"spark.master": settings.master, "spark.driver.memory": settings.memory}
    made["spark.sql.shuffle.partitions"] = str(partitions)
    made |= settings.extra
    if settings.jars:
        theirs = [settings.extra["spark.jars"]] if "spark.jars" in settings.extra else []
        made["spark.jars"] = ",".join([*map(str, settings.jars), *theirs])
    local = re.fullmatch(r"local(\[.*\])?", made["spark.master"])
    return {**SPEED_DEFAULTS, **(LOCAL_MASTER_DEFAULTS if local else {}), **made, **REQUIRED_PROPERTIES}
