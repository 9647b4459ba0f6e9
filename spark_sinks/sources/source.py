"""What a source is: it reads the records of a transport scheme. Sources are found by entry point."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Span
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError
from spark_sinks.sources import driver_data_source

NAMESPACE = "spark_sinks.sources"

# As jars.fetch; on a terminal with a progress bar.
Fetch = Callable[[str], Sequence[Path]]


class Source(Protocol):
    """Reads the spans of a batch. It is made with the transport's URL, which has the configuration."""

    def __init__(self, url: DriverURL) -> None: ...

    def jars(self, fetch: Fetch) -> Sequence[Path]:
        """Return the jars that Spark needs; ``fetch`` downloads a set of jars by its name."""

    def read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        """Return the records of the spans, with the columns of ``decode.full.RAW_SCHEMA``."""


def load(url: DriverURL) -> Source:
    """Make the source for a URL."""
    make: type[Source] = plugins.load(NAMESPACE, str(url.transport))
    return make(url)


class DriverSource:
    """Reads with the transport's own driver, in Python, with one task for each span."""

    def __init__(self, url: DriverURL) -> None:
        if not url.virtual_host:
            raise ConfigurationError(
                f"{url.masked()} is private to one process: name a file that other processes can read"
            )
        self._url = url

    def jars(self, fetch: Fetch) -> Sequence[Path]:  # noqa: ARG002 - Python needs none
        return ()

    def read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        spark.dataSource.register(driver_data_source.DriverDataSource)
        conf = self._url.conf
        read = [conf.config_file or [], conf.config_dir or []] if "config_file" in conf else [[], []]
        reader = spark.read.format(driver_data_source.DriverDataSource.name()).options(
            url=str(self._url),
            spans=json.dumps([[*span.partition, span.start, span.stop] for span in spans]),
            config=json.dumps(read),
        )
        return reader.load()
