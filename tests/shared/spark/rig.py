"""A log, a job over it and what came of it, all real."""

import datetime
import json
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from pyspark.sql import SparkSession

from notifier_kafka.contract.driver import Delivery, Driver, Limits, Record
from notifier_kafka.publishing import transport
from spark_sinks.decode.clock_tolerance import ClockTolerance
from spark_sinks.job import job, settings
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.job.run_report import RunReport
from spark_sinks.language import metrics_file
from spark_sinks.language.metrics import Metric
from spark_sinks.outputs import files, sink
from spark_sinks.state import ledger
from tests.shared.spark import recount


def conf(ini: str = "") -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    made([], default_config_files=[ini] if ini else [])
    return made


# The events are of a fixed day, and the log is of today.
CLOCK = ClockTolerance(behind=10_000 * 86_400, ahead=10_000 * 86_400)


def limits(**changes: Any) -> RunLimits:
    return RunLimits(clock=CLOCK, **changes)


class Rig:
    """One directory with a log, a checkpoint and outputs."""

    def __init__(
        self, directory: Path, wanted: Sequence[Metric] | None = None, url: str = "", ini: str = ""
    ) -> None:
        self.directory = directory
        self.metrics = wanted or metrics_file.default()
        self.url = url or f"sqlite:///{directory}/log.db?partitions=3&synchronous=normal"
        self.transport = transport.get_notification_transport(conf(ini), self.url)
        self.driver: Driver = self.transport.driver
        # Since Python 3.13 a connection to SQLite that nobody closed is a warning.
        weakref.finalize(self, self.driver.close)
        self.ledger = ledger.Ledger(directory / "checkpoint")

    def publish(self, records: Iterable[Record]) -> None:
        publisher = self.driver.publisher(_refuse, Limits())
        for record in records:
            publisher.offer(record)
        assert publisher.flush(60) == 0

    def run(
        self,
        spark: SparkSession | None,
        limits: RunLimits,
        outputs: Sequence[str] = (),
        topics: Sequence[str] = ("t",),
    ) -> RunReport:
        sinks = {output: sink.load(output, conf()) for output in outputs}
        made = job.Job(spark, self.driver, self.ledger, self.metrics, sinks)
        with self.ledger.locked({"input": self.driver.url.masked()}, settings.metric_digests(self.metrics)):
            return made.run(topics, limits)

    def deliveries(self, names: Sequence[str] = ("t.info",)) -> Iterator[Delivery]:
        for span in self.driver.spans(names):
            yield from self.driver.read(span)

    def truth(self, names: Sequence[str] = ("t.info",)) -> dict[recount.Key, float]:
        return recount.rows(self.deliveries(names), self.metrics, CLOCK.behind, CLOCK.ahead)

    def parquet(self, name: str) -> dict[recount.Key, float]:
        return keyed(files.read(self.directory / name))

    def malformed(self) -> int:
        parts = (self.directory / "checkpoint" / "malformed").glob("*.json")
        return sum(len(path.read_text().splitlines()) for path in parts)


def keyed(found: Iterable[dict[str, Any]]) -> dict[recount.Key, float]:
    """Return the value of each row by what tells it from others."""
    return {
        recount.key_of(
            row["metric"],
            row["window_start"].replace(tzinfo=None),
            row["window_end"].replace(tzinfo=None),
            dict(row["group"]),
        ): row["value"]
        for row in found
    }


def _refuse(record: Record, error: Exception) -> None:
    raise error


def iso(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.removesuffix("Z"))


def group(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = json.loads(text)
    return found
