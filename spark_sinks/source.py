"""Where notifications come from: one function for each transport scheme, found by entry point.

Each takes the session, the transport's URL and the spans of a batch, and returns the records
in the columns of ``decode.RAW``.
"""

import json
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from notifier_kafka import plugins
from notifier_kafka.driver import Span
from notifier_kafka.errors import ConfigurationError
from notifier_kafka.url import TransportURL
from spark_sinks import driver_source

NAMESPACE = "spark_sinks.sources"

Source = Callable[[SparkSession, TransportURL, Sequence[Span]], DataFrame]


def load(url: TransportURL) -> Source:
    """Find the source for a URL."""
    found: Source = plugins.load(NAMESPACE, str(url.transport))
    return found


def read_by_driver(spark: SparkSession, url: TransportURL, spans: Sequence[Span]) -> DataFrame:
    """Read through the transport's own driver, in Python, a task for each span."""
    if not url.virtual_host:
        raise ConfigurationError(f"{url.masked()} is private to one process: name a file for others to read")
    spark.dataSource.register(driver_source.DriverSource)
    reader = spark.read.format(driver_source.DriverSource.name()).options(
        url=str(url),
        spans=json.dumps([[*span.partition, span.start, span.stop] for span in spans]),
        config=json.dumps(list(url.conf.config_file or []) if "config_file" in url.conf else []),
    )
    return reader.load()
