"""A job with everything that it needs: its ledger held, its Spark started, its sinks opened."""

import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from notifier_kafka.contract.driver import Driver
from notifier_kafka.errors import ConfigurationError, DriverLoadFailure
from spark_sinks.engine import session
from spark_sinks.job import job
from spark_sinks.job.run_report import RunReport
from spark_sinks.job.settings import JobSettings, metric_digests
from spark_sinks.outputs import secret_masking, sink
from spark_sinks.sources import source
from spark_sinks.state import ledger

LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def open_job(driver: Driver, chosen: JobSettings, fetch: source.Fetch) -> Iterator[job.Job]:
    """Open a job; what can be refused without Spark is refused before it starts."""
    conf = driver.url.conf
    needed = source.load(driver.url)
    kept = ledger.Ledger(chosen.checkpoint)
    sinks = {secret_masking.output(output): sink.load(output, conf) for output in chosen.outputs}
    for each in sinks.values():
        if isinstance(each, sink.Choosy):
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
                # Spark 4.0 makes it in the working directory, has no use for it and leaves it.
                shutil.rmtree(left, ignore_errors=True)


def _jars(needed: source.Source, fetch: source.Fetch, properties: Mapping[str, str]) -> Sequence[Path]:
    """Get the jars of a source; where that fails, those that the user names have to do."""
    try:
        return needed.jars(fetch)
    except DriverLoadFailure as error:
        if not properties.keys() & {"spark.jars", "spark.jars.packages"}:
            raise
        LOG.warning("%s; those of spark_properties are used", error)
        return ()


def _check_output(one: sink.Sink, job: str) -> None:
    """Refuse what the configuration is to blame for. Of what else fails the run says which sink it was."""
    try:
        one.last(job)
    except (ConfigurationError, DriverLoadFailure):
        raise
    except Exception as error:  # noqa: BLE001 - a sink may be anybody's
        LOG.debug("an output does not answer yet: %s", error)


def lines(sums: RunReport) -> Iterator[str]:
    """Say what a run did."""
    for partition, (start, stop) in sorted(sums.offsets.items()):
        yield f"{partition}: offsets {start} to {stop}"
    yield (
        f"{sums.read} read in {sums.batches} batches: {sums.decoded} counted, {sums.malformed} malformed, "
        f"{sums.duplicate} duplicate; {sums.late} late, {sums.misdated} with the time of their record"
    )
    if sums.lost:
        yield f"{sums.lost} records were deleted before they were counted"
    for name, rows in sums.rows.items():
        yield f"{name}: {rows} metric rows"
    for name, reason in sums.failures.items():
        yield f"{name} failed: {reason}"
    yield f"{sums.seconds:.1f} seconds"
