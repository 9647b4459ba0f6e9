"""Sinks that are a directory: parquet, csv and json, a directory below it for each batch.

Of a metric and window the rows of the latest batch count; ``read`` returns those alone.
A batch is written as a whole into its own directory and then marked done beside it.
"""

import json
import os
import uuid
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.errors import ConfigurationError
from spark_sinks import rows
from spark_sinks.settings import OWN

MARKS = "_batches"


class FileSink:
    """A directory of rows in one of Spark's formats."""

    format: ClassVar[str]
    options: ClassVar[dict[str, str]] = {}

    def __init__(self, place: str, conf: cfg.ConfigOpts) -> None:  # noqa: ARG002 - every sink is given it
        if not place:
            raise ConfigurationError(f"output {self.format}: names no directory")
        self.directory = Path(place).absolute()

    def last(self, job: str) -> int:
        done = marks(self.directory)
        if not done and self.directory.is_dir() and (strangers := _strangers(self.directory)):
            raise ConfigurationError(
                f"output {self.directory} is not empty and not of this program: it holds {strangers[0]}"
            )
        for mark in done.values():
            if mark["job"] != job:
                raise ConfigurationError(f"output {self.directory} is of another job; name another directory")
        return max(done, default=0)

    def write(self, job: str, batch: int, found: DataFrame) -> int:
        target = self.directory / f"batch={batch:08}"
        # One file: there are few rows in comparison with what they were made of.
        written = self.spell(found).coalesce(1).write.mode("overwrite").format(self.format)
        written.options(**self.options).save(str(target))
        count = int(self._read(found.sparkSession, [batch]).count())
        _save(self.directory / MARKS / f"{batch:08}", {"job": job, "rows": count})
        return count

    def spell(self, found: DataFrame) -> DataFrame:
        """Bring rows into what the format can hold."""
        return found

    def _read(self, spark: SparkSession, batches: list[int]) -> DataFrame:
        paths = [str(self.directory / f"batch={batch:08}") for batch in batches]
        reader = spark.read.format(self.format).options(**self.options)
        return reader.schema(self.spell(spark.createDataFrame([], rows.ROW)).schema).load(paths)


class ParquetSink(FileSink):
    """``parquet:DIRECTORY``."""

    format = "parquet"


class JsonSink(FileSink):
    """``json:DIRECTORY``: an object a line."""

    format = "json"
    options: ClassVar[dict[str, str]] = {"ignoreNullFields": "false"}


class CsvSink(FileSink):
    """``csv:DIRECTORY``: with a header; the group is a JSON object."""

    format = "csv"
    options: ClassVar[dict[str, str]] = {"header": "true", "escape": '"'}

    def spell(self, found: DataFrame) -> DataFrame:
        return found.withColumn("group", F.to_json("group", {"ignoreNullFields": "false"}))


def marks(directory: Path) -> dict[int, dict[str, Any]]:
    """Return the batches that are done, with what was noted of each."""
    found = (directory / MARKS).glob("*") if (directory / MARKS).is_dir() else ()
    return {int(path.name): json.loads(path.read_bytes()) for path in found if path.name.isdigit()}


def read(spark: SparkSession, directory: Path) -> DataFrame:
    """Read what a parquet sink holds: of each metric and window the rows of the latest batch."""
    sink = ParquetSink(str(directory), cfg.ConfigOpts())
    made = spark.createDataFrame([], rows.ROW).withColumn("batch", F.lit(0))
    for batch in marks(directory):
        made = made.unionByName(sink._read(spark, [batch]).withColumn("batch", F.lit(batch)))  # noqa: SLF001
    newest = F.max("batch").over(Window.partitionBy(*rows.UNIT))
    return made.withColumn("newest", newest).where("batch = newest").drop("batch", "newest")


def _strangers(directory: Path) -> list[str]:
    # What a first batch left when it was interrupted is ours, and so is the job's checkpoint.
    return sorted(name for name in os.listdir(directory) if not name.startswith(("batch=", MARKS, OWN)))


def _save(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with part.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
