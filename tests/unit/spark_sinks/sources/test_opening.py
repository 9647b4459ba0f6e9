"""Drivers that the Spark job opens for a while."""

import pathlib
import shutil

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.url import TransportURL
from spark_sinks.sources import opening


def test_what_was_read_counts_although_the_driver_cannot_be_closed(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "gone"
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    with opening.open_driver(TransportURL.parse(conf, f"sqlite:///{directory}/log.db")) as driver:
        publisher = driver.publisher(lambda _record, _error: None, Limits())
        publisher.offer(Record("t", b"1"))
        assert publisher.flush(10.0) == 0
        publisher.close()
        found = [delivery for span in driver.spans(["t"]) for delivery in driver.read(span)]
        shutil.rmtree(directory)
    assert len(found) == 1
    assert "Closing: " in caplog.text
