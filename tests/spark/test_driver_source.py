"""The data source over a driver, as Spark's Python workers run it."""

import json
from pathlib import Path

import rig

from notifier_kafka.driver import Record
from spark_sinks import driver_source


def test_large_records_cross_in_portions(tmp_path: Path) -> None:
    made = rig.Rig(tmp_path, url=f"sqlite:///{tmp_path}/log.db?partitions=1&synchronous=normal")
    large = 450_000
    made.publish(Record("t", bytes([number]) * large, None, (("h", b"x"),)) for number in range(100))
    made.publish(Record("t", None) for _ in range(driver_source.ROWS + 1))
    (span,) = made.driver.spans(["t"])
    spans = json.dumps([[*span.partition, span.start, span.stop]])
    reader = driver_source.Reader({"url": made.url, "config": "[]", "spans": spans})
    (part,) = reader.partitions()
    batches = list(reader.read(part))
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(span.stop))
    assert max(batch["value"].nbytes for batch in batches) < driver_source.BYTES + large + 100_000
    assert max(batch.num_rows for batch in batches) == driver_source.ROWS
    assert len(batches) == 4
