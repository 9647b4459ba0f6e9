"""The data source over a driver, as Spark's Python workers run it."""

import json
from pathlib import Path

import pytest
from oslo_config import cfg
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.publishing import transport
from spark_sinks.sources import driver_data_source, source
from tests.shared.spark import rig


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_workers_read_the_configuration_that_the_job_has(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    ini = tmp_path / "nk.conf.d" / "bus.conf"
    ini.parent.mkdir()
    ini.write_text("[drivers_sqlite]\nsynchronous = normal\n")
    conf = cfg.ConfigOpts()
    files, directories = ([str(ini)], []) if kind == "file" else ([], [str(ini.parent)])
    conf([], default_config_files=files, default_config_dirs=directories)
    lent = transport.get_notification_transport(conf, f"sqlite:///{tmp_path}/log.db")
    publisher = lent.driver.publisher(lambda _, error: pytest.fail(str(error)), Limits())
    publisher.offer(Record("t", b"{}"))
    assert publisher.flush(30) == 0
    read = source.load(lent.url).read(spark, lent.driver.spans(["t"]))
    assert read.count() == 1
    # What the job has read is not read again; the workers find this.
    ini.write_text("[drivers_sqlite]\nsynchronous = perhaps\n")
    with pytest.raises(PySparkException, match="synchronous"):
        read.count()
    lent.cleanup()


def test_large_records_cross_in_portions(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path, url=f"sqlite:///{tmp_path}/log.db?partitions=1&synchronous=normal")
    large = 450_000
    made.publish(Record("t", bytes([number]) * large, None, (("h", b"x"),)) for number in range(100))
    made.publish(Record("t", None) for _ in range(driver_data_source.BATCH_ROWS + 1))
    (span,) = made.driver.spans(["t"])
    spans = json.dumps([[*span.partition, span.start, span.stop]])
    reader = driver_data_source.SpanReader({"url": made.url, "config": "[[], []]", "spans": spans})
    (part,) = reader.partitions()
    batches = list(reader.read(part))
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(span.stop))
    assert max(batch["value"].nbytes for batch in batches) < driver_data_source.BATCH_BYTES + large + 100_000
    assert max(batch.num_rows for batch in batches) == driver_data_source.BATCH_ROWS
    assert len(batches) == 4
