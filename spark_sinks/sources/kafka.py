"""Reads Kafka with Spark's own connector: on the JVM, all partitions in parallel."""

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from notifier_kafka.contract.driver import Span
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.jvm import jars
from spark_sinks.sources import kafka_properties
from spark_sinks.sources.source import Fetch


class KafkaSource:
    """Reads the spans of a batch by Spark's connector, with the options of ``[drivers_kafka]``."""

    def __init__(self, url: DriverURL) -> None:
        self._properties = kafka_properties.of_driver(url)

    def jars(self, fetch: Fetch) -> Sequence[Path]:
        return fetch(jars.spark_kafka())

    def read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        frames = [self._read(spark, part) for part in _without_repeated_partitions(spans)]
        return functools.reduce(DataFrame.unionByName, frames)

    def _read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        starts: dict[str, dict[str, int]] = defaultdict(dict)
        stops: dict[str, dict[str, int]] = defaultdict(dict)
        for (topic, number), start, stop in spans:
            starts[topic][str(number)], stops[topic][str(number)] = start, stop
        assigned = {topic: [int(number) for number in found] for topic, found in starts.items()}
        reader = spark.read.format("kafka").options(**{f"kafka.{n}": v for n, v in self._properties.items()})
        reader = reader.option("assign", json.dumps(assigned)).option("includeHeaders", "true")
        reader = reader.option("startingOffsets", json.dumps(starts)).option(
            "endingOffsets", json.dumps(stops)
        )
        columns = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        return reader.load().select(*columns)


def _without_repeated_partitions(spans: Sequence[Span]) -> list[list[Span]]:
    """Split spans into lists in which each partition occurs once: a read has one range for each."""
    lists: dict[int, list[Span]] = defaultdict(list)
    seen: Counter[object] = Counter()
    for span in spans:
        lists[seen[span.partition]].append(span)
        seen[span.partition] += 1
    return list(lists.values())
