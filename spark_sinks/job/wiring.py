"""Makes a job with everything that it needs: ledger, Spark session and sinks."""

import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from notifier_kafka.contract.driver import Driver
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure
from spark_sinks.engine import session
from spark_sinks.job import job
from spark_sinks.job.settings import JobSettings, metric_digests
from spark_sinks.outputs import secret_masking, sink
from spark_sinks.sources import source
from spark_sinks.state import ledger

LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def open_job(driver: Driver, chosen: JobSettings, fetch: source.Fetch) -> Iterator[job.Job]:
    """Open a job. Whatever can be refused without Spark is refused before Spark starts."""
    conf = driver.url.conf
    needed = source.load(driver.url)
    kept = ledger.Ledger(chosen.checkpoint)
    sinks = {secret_masking.output(output): sink.load(output, conf) for output in chosen.outputs}
    for each in sinks.values():
        if isinstance(each, sink.ChecksMetrics):
            each.check(chosen.metrics)
    with kept.locked({"input": driver.url.masked()}, metric_digests(chosen.metrics)):
        for each in sinks.values():
            _check_output(each, kept.job)
        group = chosen.options
        left = Path("artifacts").absolute()
        was_there = left.exists()
        spark = session.start(
            session.SessionSettings(
                group.master,
                group.memory,
                group.shuffle_partitions,
                jars=_jars(needed, fetch, group.spark_properties),
                java=group.java,
                extra=group.spark_properties,
            )
        )
        try:
            yield job.Job(spark, driver, kept, chosen.metrics, sinks)
        finally:
            spark.stop()
            if not was_there:
                # Spark 4.0 leaves this directory, unused, in the working directory.
                shutil.rmtree(left, ignore_errors=True)


def _jars(needed: source.Source, fetch: source.Fetch, properties: Mapping[str, str]) -> Sequence[Path]:
    """Get the jars of a source. When that fails, use those that the user names."""
    try:
        return needed.jars(fetch)
    except DriverLoadFailure as error:
        if not properties.keys() & {"spark.jars", "spark.jars.packages"}:
            raise
        LOG.warning("%s; the jars of spark_properties are used instead", error)
        return ()


def _check_output(output: sink.Sink, job: str) -> None:
    """Raise errors of configuration. The run reports other failures, with the name of the sink."""
    try:
        output.last(job)
    except (ConfigurationError, DriverLoadFailure):
        raise
    except Exception as error:  # noqa: BLE001 - a sink may come from anywhere
        LOG.debug("an output cannot be read yet: %s", error)
