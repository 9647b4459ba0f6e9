"""A PySpark data source over the drivers of notifier-kafka. Runs in Spark's Python workers."""

import json
from collections.abc import Iterator

import pyarrow as pa
from oslo_config import cfg
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from notifier_kafka.contract.driver import Delivery, Partition, Record, Span
from notifier_kafka.publishing import transport

ROWS = 5_000
"""Rows that cross to the JVM at once, at most."""
BYTES = 16 * 1024 * 1024
"""And bytes, which may be passed by those of a row: an array of Arrow's holds 2 GiB."""

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
    ]
)


class Part(InputPartition):  # type: ignore[misc]
    """One span, for one task."""

    def __init__(self, span: Span) -> None:
        super().__init__(tuple(span))
        self.span = span


class DriverSource(DataSource):  # type: ignore[misc]
    """Options: ``url``, and as JSON ``spans`` and ``config``: names of INI files and of their directories."""

    @classmethod
    def name(cls) -> str:
        return "notifier-kafka"

    def schema(self) -> str:
        from spark_sinks.decode.full import RAW

        return RAW

    def reader(self, schema: StructType) -> "Reader":  # noqa: ARG002 - the signature is PySpark's
        return Reader(dict(self.options))


class Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        spans = json.loads(self.options["spans"])
        return [Part(Span(Partition(topic, number), start, stop)) for topic, number, start, stop in spans]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)  # noqa: S101 - made above
        conf = cfg.ConfigOpts()
        files, directories = json.loads(self.options["config"])
        conf([], default_config_files=files, default_config_dirs=directories)
        lent = transport.get_notification_transport(conf, self.options["url"])
        try:
            some: list[Delivery] = []
            size = 0
            for delivery in lent.driver.read(partition.span):
                some.append(delivery)
                size += _size(delivery.record)
                if len(some) == ROWS or size >= BYTES:
                    yield _batch(some)
                    some, size = [], 0
            if some:
                yield _batch(some)
        finally:
            lent.cleanup()


def _size(record: Record) -> int:
    return sum(
        len(part or b"") for part in (record.value, record.key, *(value for _, value in record.headers))
    )


def _batch(deliveries: list[Delivery]) -> pa.RecordBatch:
    records, partitions, offsets, timestamps = zip(*deliveries, strict=True)
    columns = [
        pa.array([partition.topic for partition in partitions], pa.string()),
        pa.array([partition.number for partition in partitions], pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array([round(seconds * 1_000_000) for seconds in timestamps], pa.int64()),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([[{"key": k, "value": v} for k, v in record.headers] for record in records], _HEADERS),
    ]
    columns[3] = columns[3].cast(SCHEMA.field("timestamp").type)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
