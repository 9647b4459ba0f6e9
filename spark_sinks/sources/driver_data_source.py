"""A PySpark data source that reads with the drivers of notifier-kafka, in Spark's Python workers."""

import json
from collections.abc import Iterator

import pyarrow as pa
from oslo_config import cfg
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract.driver import Delivery, Partition, Record, Span
from spark_sinks.sources import opening

BATCH_ROWS = 5_000
"""Rows that go to the JVM at once, at most."""
BATCH_BYTES = 16 * 1024 * 1024
"""Bytes that go to the JVM at once; the last row may exceed it. An Arrow array holds 2 GiB."""

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


class SpanPartition(InputPartition):  # type: ignore[misc]
    """One span, for one task."""

    def __init__(self, span: Span) -> None:
        super().__init__(tuple(span))
        self.span = span


class DriverDataSource(DataSource):  # type: ignore[misc]
    """Its options are ``url``, and as JSON ``spans`` and ``config``: INI files and directories of such."""

    @classmethod
    def name(cls) -> str:
        return "notifier-kafka"

    def schema(self) -> str:
        from spark_sinks.decode.full import RAW_SCHEMA

        return RAW_SCHEMA

    def reader(self, schema: StructType) -> "SpanReader":  # noqa: ARG002 - the signature is PySpark's
        return SpanReader(dict(self.options))


class SpanReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        spans = json.loads(self.options["spans"])
        return [
            SpanPartition(Span(Partition(topic, number), start, stop)) for topic, number, start, stop in spans
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SpanPartition)  # noqa: S101 - made above
        conf = cfg.ConfigOpts()
        files, directories = json.loads(self.options["config"])
        conf([], default_config_files=files, default_config_dirs=directories)
        with opening.open_driver(TransportURL.parse(conf, self.options["url"])) as driver:
            batch: list[Delivery] = []
            size = 0
            for delivery in driver.read(partition.span):
                batch.append(delivery)
                size += _size_in_bytes(delivery.record)
                if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
                    yield _record_batch(batch)
                    batch, size = [], 0
            if batch:
                yield _record_batch(batch)


def _size_in_bytes(record: Record) -> int:
    return sum(
        len(part or b"") for part in (record.value, record.key, *(value for _, value in record.headers))
    )


def _record_batch(deliveries: list[Delivery]) -> pa.RecordBatch:
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
