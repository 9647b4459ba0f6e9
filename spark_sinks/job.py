"""A job: batches of frozen spans, counted once each, and handed to every sink.

The order of the steps is what makes that hold. The plan of a batch is kept before anything
is read. Its partials are written where nobody looks until the ledger says that the batch is
counted. Sinks come after: a sink is given whole figures, never increments, for every window
that changed since the last batch that it holds, so that one that failed catches up and one
that was interrupted is written the same again.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.driver import Driver, Span
from notifier_kafka.errors import LogUnusable
from spark_sinks import (
    aggregate,
    decode,
    dedupe,
    durations,
    needs,
    partials,
    plan,
    rows,
    source,
    topics,
    usual,
)
from spark_sinks.ledger import Ledger
from spark_sinks.metrics import Metric
from spark_sinks.plan import Plan
from spark_sinks.sinks.sink import Sink

LOG = logging.getLogger(__name__)


_COUNTS = ("read", "decoded", "duplicate", "misdated", "late")
_NOTHING: dict[str, Any] = {"malformed": {}, "newest": None, "newest_logged": 0.0} | dict.fromkeys(_COUNTS, 0)


@dataclass(frozen=True)
class Bounds:
    """What a run counts: times are seconds since the epoch."""

    since: float | None = None
    until: float | None = None
    start: str = "earliest"
    records: int | None = None
    batch_records: int = 2_000_000
    horizon: float = 3_600.0
    clock: decode.Clock = decode.CLOCK
    allow_loss: bool = False


@dataclass
class Sums:
    """What a run did."""

    read: int = 0
    decoded: int = 0
    malformed: int = 0
    duplicate: int = 0
    misdated: int = 0
    late: int = 0
    lost: int = 0
    batches: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, list[int]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Job:
    """Counts topics of one transport into one ledger and some sinks."""

    def __init__(
        self,
        spark: SparkSession,
        driver: Driver,
        ledger: Ledger,
        metrics: Sequence[Metric],
        sinks: Mapping[str, Sink],
    ) -> None:
        self._spark = spark
        self._driver = driver
        self._source = source.load(driver.url)
        self._ledger = ledger
        self._metrics = metrics
        self._sinks = sinks

    def run(self, wanted: Sequence[str], bounds: Bounds, stopped: Callable[[], bool] = lambda: False) -> Sums:
        """Count what the topics hold now, in as many batches as it takes.

        Within the ledger's ``locked``. A batch that was interrupted comes first. A sink that
        fails is named in the sums, and catches up in a later run.
        """
        began, sums = time.monotonic(), Sums()
        if pending := self._ledger.pending():
            LOG.info("batch %d was interrupted and is done again", pending.batch)
            self._count(pending, bounds, sums)
        spans = self._spans(wanted, bounds, sums)
        left = plan.records(spans)
        if spans and not left and not self._ledger.last():
            # A first run that finds nothing, or wants nothing, notes from where to go on.
            self._start(Plan(1, tuple(spans)), bounds, sums)
        left = left if bounds.records is None else min(left, bounds.records)
        while left > 0 and not stopped():
            part = plan.limit(spans, min(left, bounds.batch_records))
            self._start(Plan(self._ledger.last() + 1, part), bounds, sums)
            left -= plan.records(part)
            spans = self._uncounted(spans)
        self._feed(sums)
        sums.seconds = time.monotonic() - began
        return sums

    def _spans(self, wanted: Sequence[str], bounds: Bounds, sums: Sums) -> list[Span]:
        names = topics.existing(self._driver, wanted)
        held, counted = self._driver.spans(names), self._ledger.counted()
        lost = plan.check_retention(held, counted)
        for span, records in lost:
            text = (
                f"topic {span.partition.topic}, partition {span.partition.number}: {records} records before "
                f"offset {span.start} were deleted before they were counted"
            )
            if not bounds.allow_loss:
                raise LogUnusable(f"{text}; --allow-loss goes on without them")
            LOG.warning("%s", text)
            sums.lost += records
        if bounds.since is not None:
            return self._uncounted(self._driver.spans(names, bounds.since, bounds.until))
        ends = held if bounds.until is None else self._driver.spans(names, None, bounds.until)
        return plan.following(ends, counted, bounds.start)

    def _uncounted(self, spans: Sequence[Span]) -> list[Span]:
        counted = self._ledger.counted()
        return [part for span in spans for part in plan.uncounted(span, counted.get(span.partition, ()))]

    def _start(self, planned: Plan, bounds: Bounds, sums: Sums) -> None:
        self._ledger.write_plan(planned)
        LOG.info("batch %d: planned", planned.batch)
        self._count(planned, bounds, sums)

    def _count(self, planned: Plan, bounds: Bounds, sums: Sums) -> None:
        """Make and keep the partials of a batch, then note that it is counted."""
        noted = self._make(planned, bounds) if planned.records else dict(_NOTHING)
        LOG.info("batch %d: written", planned.batch)
        self._ledger.write_counted(planned, noted)
        LOG.info("batch %d: counted", planned.batch)
        _add(sums, planned, noted)

    def _make(self, planned: Plan, bounds: Bounds) -> dict[str, Any]:
        quick, rest = usual.split(
            self._source.read(self._spark, planned.spans), bounds.clock, needs.payload(self._metrics)
        )
        with _kept(self._prepared(quick, planned, F.col("usual"))) as first:
            times = first.agg(
                F.min("logged").alias("oldest"),
                F.max("logged").alias("newest"),
                F.count_if(~F.col("usual")).alias("unusual"),
            ).first()
            assert times is not None  # noqa: S101 - an aggregate has a row
            LOG.info("batch %d: read", planned.batch)
            if not times.unusual:
                return self._keep(planned, first, times, bounds)
            # The long way for the others, read again: it is not even planned where there are none.
            decoded = decode.decode(rest, bounds.clock)
            with _kept(self._prepared(decoded, planned, F.lit(False).alias("usual"))) as second:  # noqa: FBT003
                return self._keep(planned, first.where("usual").unionByName(second), times, bounds)

    def _prepared(self, decoded: DataFrame, planned: Plan, mark: Column) -> DataFrame:
        pairs = durations.events(self._metrics).alias("pairs")
        return dedupe.place(aggregate.prepare(decoded, self._metrics, pairs, mark), planned.spans)

    def _keep(self, planned: Plan, placed: DataFrame, times: Row, bounds: Bounds) -> dict[str, Any]:
        """Write what a batch leaves behind, and return what is noted of it."""
        batch = planned.batch
        with contextlib.ExitStack() as kept:
            if bounds.horizon and times.oldest is not None:
                ids = kept.enter_context(_kept(dedupe.ids(placed)))
                partials.write(ids, self._ledger, "seen", batch)
                placed = dedupe.mark(
                    placed, ids, self._seen(planned, times.oldest.timestamp() - bounds.horizon)
                )
            summary = kept.enter_context(_kept(aggregate.summarise(placed, self._metrics)))
            partials.write(aggregate.partials(summary, self._metrics), self._ledger, "partials", batch)
            LOG.info("batch %d: partials written", batch)
            noted = self._note(summary)
            if durations.any_of(self._metrics):
                partials.write(durations.rows_of(placed), self._ledger, "pairs", batch)
            if noted["malformed"]:
                self._set_aside(placed, planned)
        return noted | {"newest_logged": times.newest.timestamp() if times.newest else 0.0}

    def _seen(self, planned: Plan, since: float) -> DataFrame | None:
        before = range(1, planned.batch)
        recent = [batch for batch in before if self._ledger.sums(batch)["newest_logged"] >= since]
        return partials.read(self._spark, self._ledger, "seen", recent) if recent else None

    def _note(self, summary: DataFrame) -> dict[str, Any]:
        """Add up what became of the records of a batch."""
        last = self._ledger.last()
        newest = self._ledger.sums(last)["newest"] if last else None
        late = F.when(F.col("start") < F.lit(newest), F.col("count")).otherwise(0) if newest else F.lit(0)
        found = summary.groupBy("reason").agg(
            F.sum("count").alias("count"),
            F.sum("misdated").alias("misdated"),
            F.sum(late).alias("late"),
            F.max("start").alias("newest"),
        )
        counts = {row.reason: row for row in found.collect()}
        good, duplicate = counts.pop(None, None), counts.pop(dedupe.DUPLICATE, None)
        return {
            "read": sum(row["count"] for row in (good, duplicate, *counts.values()) if row),
            "decoded": good["count"] if good else 0,
            "duplicate": duplicate["count"] if duplicate else 0,
            "malformed": {reason: row["count"] for reason, row in counts.items()},
            "misdated": good.misdated if good else 0,
            "late": good.late if good else 0,
            "newest": max(filter(None, (newest, good and good.newest)), default=None),
        }

    def _set_aside(self, placed: DataFrame, planned: Plan) -> None:
        """Keep where the malformed records lie, and why each is one."""
        target = str(self._ledger.data("malformed", planned.batch))
        malformed = decode.malformed(placed.where(F.col("reason") != dedupe.DUPLICATE))
        malformed.coalesce(1).write.mode("overwrite").json(target)

    def _feed(self, sums: Sums) -> None:
        """Bring the sinks up to the last batch; those that are equally far share the work."""
        newest = self._ledger.last()
        behind: dict[int, list[str]] = {}
        for name, sink in self._sinks.items():
            with _failing(name, sums):
                held = sink.last(self._ledger.job)
                behind.setdefault(newest - sums.batches if held is None else held, []).append(name)
        for since, names in behind.items():
            if since < newest:
                self._write(names, since, newest, sums)

    def _write(self, names: list[str], since: int, newest: int, sums: Sums) -> None:
        changed = partials.changed(self._spark, self._ledger, self._metrics, since)
        with _kept(changed) as merged, _kept(rows.of_partials(merged, self._metrics)) as found:
            for name in names:
                with _failing(name, sums):
                    sums.rows[name] = self._sinks[name].write(self._ledger.job, newest, found)
                    LOG.info("batch %d: in %s", newest, name)


@contextlib.contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep what a frame yields while it is used more than once."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


@contextlib.contextmanager
def _failing(name: str, sums: Sums) -> Iterator[None]:
    """Note the failure of a sink, so that the others go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a sink may be anybody's, and Spark's errors are many
        sums.failures[name] = str(error).splitlines()[0] if str(error) else type(error).__name__


def _add(sums: Sums, planned: Plan, noted: Mapping[str, Any]) -> None:
    for name in _COUNTS:
        setattr(sums, name, getattr(sums, name) + noted[name])
    sums.malformed += sum(noted["malformed"].values())
    sums.batches += 1
    for span in planned.spans:
        key = f"{span.partition.topic}[{span.partition.number}]"
        start, stop = sums.offsets.get(key, [span.start, span.stop])
        sums.offsets[key] = [min(start, span.start), max(stop, span.stop)]
