"""Metrics by Spark, beside a floor and beside a loop as a user would write it by hand.

The floor is the time in which Spark's connector reads the same records and adds up their lengths.
The loop makes the same default metrics in one Python process: ``hand_written_loop``.
"""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg
from pyspark.sql import functions as F  # noqa: N812

from benchmarks import sizes
from benchmarks.bare_clients import InvalidMeasurement
from benchmarks.spark.hand_written_loop import run_loop
from benchmarks.spark.traffic import PARTITIONS, append, publish
from notifier_kafka import get_notification_transport
from notifier_kafka.driver import Driver
from notifier_kafka.jvm import jars
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from spark_sinks.engine import session
from spark_sinks.job import job, settings
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.language import metrics, metrics_file
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Metric, Window
from spark_sinks.outputs import sink
from spark_sinks.sources import source
from spark_sinks.state import ledger

FULL, QUICK, SMALL_BATCH_RECORDS = sizes.FULL.spark, sizes.QUICK.spark, 1_000
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Figure(NamedTuple):
    """One measurement. ``memory`` is that of all processes together."""

    name: str
    records: int
    seconds: float
    cpu: float
    memory: int = 0


def main(*, quick: bool, as_json: bool, count: int | None = None, rounds: int | None = None) -> None:
    """Measure, and print figures and ratios. 20 million in two rounds take 20 GB of disk and half an hour."""
    count = count or (QUICK if quick else FULL)
    rounds = rounds or (sizes.QUICK if quick else sizes.FULL).rounds
    with _broker() as cluster:
        publish(cluster.bootstrap, "bench.info", count)
        publish(cluster.bootstrap, "tenth.info", QUICK)
        for number in range(2):
            publish(cluster.bootstrap, f"small{number}.info", SMALL_BATCH_RECORDS, number)
        found = measure(cluster.url, cluster.bootstrap, count, rounds)
    if as_json:
        print(json.dumps([each._asdict() for each in found], indent=2))
    else:
        print(table(found))


def table(found: list[Figure]) -> str:
    """Draw figures as text, with ratios to the floor of the same run."""
    floor = next(each for each in reversed(found) if each.name.startswith("floor"))
    lines = [
        f"{'':36}{'records':>10}{'seconds':>9}{'a second':>11}{'µs of CPU':>11}{'of floor':>10}{'MiB':>7}"
    ]
    for each in found:
        line = f"{each.name:36}{each.records:10,}{each.seconds:9.2f}"
        if each.records >= QUICK:
            rate = each.records / each.seconds
            cpu = f"{each.cpu / each.records * 1e6:11.1f}" if each.cpu else f"{'':11}"
            line += f"{rate:11,.0f}{cpu}{rate * floor.seconds / floor.records:10.2f}"
        line += f"{each.memory / 2**20:7.0f}" if each.memory else ""
        lines.append(line)
    return "\n".join(lines)


def measure(url: str, bootstrap: str, count: int, rounds: int) -> list[Figure]:
    """Measure a first run in a new process; then floor, jobs and loop in turn, warm; then small batches."""
    found = [_first_run(url, count)]
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[], default_config_dirs=[])
    bus = get_notification_transport(conf, f"{url}/?client=confluent-kafka")
    spark = session.start(session.SessionSettings(master="local[2]", jars=jars.fetch(jars.SPARK_KAFKA)))
    try:
        run = _Runs(spark, bus.driver, conf)
        contestants: list[tuple[str, Callable[[], object]]] = [
            ("floor", run.floor),
            ("default metrics, warm", lambda: run.count(["bench"])),
            ("payload, percentiles, distinct", lambda: run.count(["bench"], _RICH)),
            ("single-process loop", lambda: run_loop(bootstrap, count)),
        ]
        for _, work in contestants[:-1]:
            work()
        for number in range(1, rounds + 1):
            found += [_timed(f"{name} {number}", count, work) for name, work in contestants]
        kept = run.count(["bench"])
        run.count(["bench", "small0"], kept=kept)
        found.append(
            _timed(
                "a batch of 1,000",
                SMALL_BATCH_RECORDS,
                lambda: run.count(["bench", "small*.info"], kept=kept),
            )
        )
        found.append(_timed("an empty batch", 0, lambda: run.count(["bench"], kept=kept)))
        run.count(["tenth"])
        found.append(_timed("default metrics, a tenth", QUICK, lambda: run.count(["tenth"])))
        found += _sources(run, conf)
    finally:
        spark.stop()
        bus.cleanup()
    return found


def _sources(run: "_Runs", conf: cfg.ConfigOpts) -> list[Figure]:
    """Read the same number of records through either source."""
    found = []
    with tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-") as directory:
        bus = get_notification_transport(conf, f"sqlite:///{directory}/log?partitions={PARTITIONS}")
        try:
            append(bus.driver, "tenth.info", QUICK)
            for name, driver in (("Kafka source", None), ("SQLite source", bus.driver)):
                run.floor("tenth.info", driver)
                found.append(_timed(name, QUICK, functools.partial(run.floor, "tenth.info", driver)))
        finally:
            bus.cleanup()
    return found


class _Runs:
    """The measurements in one Spark session."""

    def __init__(self, spark: Any, driver: Driver, conf: cfg.ConfigOpts) -> None:
        self._spark, self._driver, self._conf = spark, driver, conf

    def floor(self, topic: str = "bench.info", driver: Driver | None = None) -> None:
        driver = driver or self._driver
        frame = source.load(driver.url).read(self._spark, driver.spans([topic]))
        frame.agg(F.count("*"), F.sum(F.length("value"))).collect()

    def count(
        self,
        topics: list[str],
        wanted: tuple[metrics.Metric, ...] = metrics_file.default(),
        kept: Path | None = None,
    ) -> Path:
        """Run a job; a new one where ``kept`` is None."""
        directory = kept or Path(tempfile.mkdtemp(prefix="notifier-kafka-benchmarks-"))
        held = ledger.Ledger(directory / "checkpoint")
        outputs = {"out": sink.load(f"parquet:{directory}/out", self._conf)}
        with held.locked({}, settings.metric_digests(wanted)):
            sums = job.Job(self._spark, self._driver, held, wanted, outputs).run(topics, RunLimits())
        if sums.failures or sums.malformed or sums.duplicate:
            raise InvalidMeasurement(str(sums))
        return directory


_SIZE = FieldPath("payload", ("size",))
_HOUR = (Window.tumbling(3600),)
_RICH = (
    Metric("sum", "sum", "B", value=_SIZE),
    Metric("sizes", "percentiles", "B", value=_SIZE, windows=_HOUR),
    Metric("ids", "distinct", "1", value=FieldPath("payload", ("instance_id",)), windows=_HOUR),
)


def _timed(name: str, records: int, work: Callable[[], object]) -> Figure:
    print(f"  {name}", file=sys.stderr)
    began, cpu = time.perf_counter(), _cpu()
    work()
    return Figure(name, records, time.perf_counter() - began, _cpu() - cpu)


def _cpu() -> float:
    """Return the seconds of CPU time of this process and its children."""
    return sum(_cpu_of(pid) for pid in (os.getpid(), *_children(os.getpid())))


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [found for child in map(int, listed) for found in (child, *_children(child))]


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _first_run(url: str, count: int) -> Figure:
    with tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-") as directory:
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", url, "aggregate"]
        command += ["--topic", "bench", "--output", f"parquet:{directory}/out"]

        with Path(directory, "said").open("w+") as said:
            began = time.perf_counter()
            with subprocess.Popen(command, stdout=said, stderr=said) as child:
                most = _watch(child)
            seconds = time.perf_counter() - began
            said.seek(0)
            text = said.read()
        if child.returncode or f"{count} read" not in text:
            raise InvalidMeasurement(text[-500:])
    return Figure("first run in a new process", count, seconds, 0.0, most)


def _watch(child: "subprocess.Popen[bytes]") -> int:
    """Wait for the end of a process; return the most memory that it and its children had together."""
    most = 0
    while child.poll() is None:
        with contextlib.suppress(OSError):
            most = max(most, sum(map(_memory_of, (child.pid, *_children(child.pid)))))
        time.sleep(0.2)
    return most


def _memory_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


@contextlib.contextmanager
def _broker() -> Iterator[Cluster]:
    directory = tempfile.mkdtemp(prefix="notifier-kafka-benchmarks-")
    cluster = Cluster(directory, ends_with_parent=False)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
