"""A job: batches of frozen spans. Each batch is counted exactly once and written to every sink.

The order of the steps guarantees that. The plan of a batch is stored before anything is read.
Its partials are invisible until the ledger says that the batch is counted. Sinks come last. A
sink gets whole figures, never increments, for every window that changed since the last batch
that it holds: so a sink that failed catches up, and an interrupted write is repeated unchanged.
"""

import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from notifier_kafka.contract.driver import Driver, Span
from spark_sinks.decode import fast, full
from spark_sinks.decode.strict_json import never
from spark_sinks.engine import aggregate, column_pruning, dedupe, durations, rollup, spark_errors
from spark_sinks.engine.sketches import Sketches
from spark_sinks.job import offset_discovery
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.job.run_report import RunProgress, RunReport
from spark_sinks.language.metrics import Metric
from spark_sinks.outputs import rows
from spark_sinks.outputs.sink import Sink
from spark_sinks.sources import source
from spark_sinks.state import partials, plan, safe_files, segments
from spark_sinks.state.ledger import COUNTS, Ledger
from spark_sinks.state.plan import Plan

LOG = logging.getLogger(__name__)


# The columns of each record that go to the driver: they tell what was counted before.
_IDENTITY_COLUMNS = ("id", "place", "logged", "is_fast")
_EMPTY_BATCH: dict[str, Any] = {"malformed": {}} | dict.fromkeys(
    (*COUNTS, "oldest_logged", "newest_logged"), 0
)


class Job:
    """Counts the topics of one transport, with one ledger and several sinks."""

    def __init__(
        self,
        spark: SparkSession,
        driver: Driver,
        ledger: Ledger,
        metrics: Sequence[Metric],
        sinks: Mapping[str, Sink],
    ) -> None:
        self.spark = spark
        self.progress = RunProgress()
        self._reported_gone: set[str] = set()
        self._driver = driver
        self._source = source.load(driver.url)
        self._ledger = ledger
        self._metrics = metrics
        self._sinks = sinks
        self._sketches = Sketches(spark)

    def run(
        self, wanted: Sequence[str], limits: RunLimits, stopped: Callable[[], bool] = lambda: False
    ) -> RunReport:
        """Count what the topics hold now, in as many batches as it takes.

        Call it within the ledger's ``locked``. A batch that was interrupted comes first. A sink
        that fails is named in the report, and catches up in a later run.
        """
        began, report = time.monotonic(), RunReport()
        self.progress = RunProgress()
        if pending := self._ledger.pending():
            LOG.info("batch %d was interrupted and is repeated", pending.batch)
            self._count_batch(pending, limits, report)
        spans = self._spans(wanted, limits, report)
        left = plan.records(spans)
        begun = offset_discovery.unplaced(self._ledger, spans, limits)
        if begun and not left:
            # There is nothing to read, but the position to continue from is stored.
            self._plan_batch(Plan(self._ledger.last() + 1, tuple(begun)), limits, report)
        left = left if limits.records is None else min(left, limits.records)
        self.progress.total = self.progress.done + left
        while left > 0 and not stopped():
            part = plan.limit(spans, min(left, limits.batch_records))
            begun = offset_discovery.unplaced(self._ledger, spans, limits, part)
            self._plan_batch(Plan(self._ledger.last() + 1, (*part, *begun)), limits, report)
            left -= plan.records(part)
            spans = offset_discovery.uncounted(self._ledger, spans)
        self._update_outputs(report)
        segments.merge(self._ledger, self._sketches.unite, limits.deduplicate_seconds)
        report.seconds = time.monotonic() - began
        return report

    def _spans(self, wanted: Sequence[str], limits: RunLimits, report: RunReport) -> list[Span]:
        spans, lost, left_out = offset_discovery.spans(self._driver, self._ledger, wanted, limits)
        report.add_loss(lost, limits)
        for words in left_out:
            LOG.warning("%s", words)
        for topic in sorted(offset_discovery.gone(self._driver, self._ledger) - self._reported_gone):
            self._reported_gone.add(topic)
            LOG.warning("topic %s no longer exists: its counts stay, later records are lost", topic)
        return spans

    def _plan_batch(self, planned: Plan, limits: RunLimits, report: RunReport) -> None:
        self._ledger.write_plan(planned)
        LOG.info("batch %d: planned", planned.batch)
        self._count_batch(planned, limits, report)

    def _count_batch(self, planned: Plan, limits: RunLimits, report: RunReport) -> None:
        """Write the partials of a batch, then mark the batch as counted."""
        self.progress.batch, self.progress.batch_records = planned.batch, planned.records
        self.progress.total = max(self.progress.total, self.progress.done + planned.records)
        counts = self._read_batch(planned, limits, report)
        LOG.info("batch %d: written", planned.batch)
        self._ledger.write_counted(planned, counts)
        self.progress.done += planned.records
        LOG.info("batch %d: counted", planned.batch)
        report.add_batch(planned, counts)

    def _read_batch(self, planned: Plan, limits: RunLimits, report: RunReport) -> dict[str, Any]:
        """Count what the log still has of a batch. A failure because of deleted records counts as a loss."""
        while planned.records:
            # A loss is counted once: the next check is of what is left.
            planned, lost = offset_discovery.readable(self._driver, planned)
            report.add_loss(lost, limits)
            if not planned.records:
                break
            try:
                return self._decode_batch(planned, limits)
            except spark_errors.SPARK_EXCEPTIONS as error:
                if offset_discovery.readable(self._driver, planned)[1]:
                    continue
                raise spark_errors.translate(error, planned.batch) from error
        return _EMPTY_BATCH | {"newest": self._newest()}

    def _decode_batch(self, planned: Plan, limits: RunLimits) -> dict[str, Any]:
        raw = self._source.read(self.spark, planned.spans)
        decoded_fast = fast.decode(raw, limits.clock, column_pruning.payload(self._metrics))
        with _persisted(self._prepared(decoded_fast, planned, F.col("is_fast"))) as fast_records:
            found = fast_records.select(*_IDENTITY_COLUMNS).toArrow()
            LOG.info("batch %d: read", planned.batch)
            others = found["place"].filter(pc.invert(found["is_fast"]))
            if not len(others):
                return self._write_batch(planned, fast_records, found, limits)
            # The others are read again for the full decoder, which is not even planned when there are none.
            decoded = full.decode(self._only_at(raw, others, planned), limits.clock)
            with _persisted(self._prepared(decoded, planned, never().alias("is_fast"))) as full_records:
                fast_ones = found.filter(found["is_fast"])
                found = pa.concat_tables([fast_ones, full_records.select(*_IDENTITY_COLUMNS).toArrow()])
                records = full_records
                if len(fast_ones):
                    records = fast_records.where("is_fast").unionByName(full_records)
                return self._write_batch(planned, records, found, limits)

    def _prepared(self, decoded: DataFrame, planned: Plan, mark: Column) -> DataFrame:
        kept = aggregate.prepare(decoded, self._metrics, mark, *durations.events(self._metrics))
        return dedupe.prepare(kept, planned.spans)

    def _only_at(self, raw: DataFrame, places: pa.ChunkedArray, planned: Plan) -> DataFrame:
        if len(places) == planned.records:
            return raw
        listed = self.spark.createDataFrame(pa.table({"wanted": places}))
        return raw.join(F.broadcast(listed), dedupe.place(planned.spans) == F.col("wanted")).drop("wanted")

    def _write_batch(
        self, planned: Plan, placed: DataFrame, found: pa.Table, limits: RunLimits
    ) -> dict[str, Any]:
        """Write the state of a batch, and return its counts."""
        batch, placed = planned.batch, dedupe.add_positions(placed, planned.spans)
        known = dedupe.ids(found)
        oldest, newest = ((each or 0) / 1e6 for each in pc.min_max(known["logged"]).as_py().values())
        if limits.deduplicate_seconds and len(known):
            partials.write(known, self._ledger, "seen", batch)
            seen = self._seen(oldest - limits.deduplicate_seconds, newest + limits.deduplicate_seconds)
            placed = dedupe.mark_duplicates(
                placed, dedupe.duplicates(known, seen, limits.deduplicate_seconds)
            )
        summary = aggregate.summarise(placed, self._metrics).toArrow()
        rolled = rollup.partials(summary, self._metrics, self._sketches.unite)
        partials.write(rolled, self._ledger, "partials", batch)
        LOG.info("batch %d: partials written", batch)
        noted = self._batch_counts(summary)
        if durations.any_of(self._metrics):
            partials.write(durations.rows_of(placed, self._metrics), self._ledger, "pairs", batch)
        if noted["malformed"]:
            self._write_malformed(placed, planned)
        return noted | {"oldest_logged": oldest, "newest_logged": newest}

    def _seen(self, since: float, until: float) -> Iterator[pa.Table]:
        for piece in partials.pieces(self._ledger, "seen"):
            low, high = piece.low, piece.high
            if low is None or high is None:
                sums = self._ledger.sums(piece.last)
                low, high = sums["oldest_logged"], sums["newest_logged"]
            if high >= since and low <= until:
                yield partials.load("seen", [partials.path(self._ledger, "seen", piece)])

    def _newest(self) -> float | None:
        last = self._ledger.last()
        return self._ledger.sums(last)["newest"] if last else None

    def _batch_counts(self, summary: pa.Table) -> dict[str, Any]:
        """Add up the records of a batch by outcome."""
        newest = self._newest()
        counts: Counter[str | None] = Counter()
        noted = {"misdated": 0, "late": 0}
        columns = (summary[name].to_pylist() for name in ("reason", "start", "count", "misdated"))
        latest = newest
        for reason, start, count, misdated in zip(*columns, strict=True):
            counts[reason] += count
            if reason is None:
                noted["misdated"] += misdated
                noted["late"] += count if newest is not None and start < newest else 0
                latest = max(start, start if latest is None else latest)
        malformed = {r: count for r, count in counts.items() if r not in (None, dedupe.DUPLICATE)}
        sums = {"read": counts.total(), "decoded": counts[None], "duplicate": counts[dedupe.DUPLICATE]}
        return {**noted, **sums, "malformed": malformed, "newest": latest}

    def _write_malformed(self, placed: DataFrame, planned: Plan) -> None:
        """Write the positions of the malformed records and the reasons."""
        malformed = full.malformed(placed.where(F.col("reason") != dedupe.DUPLICATE)).toArrow()
        path = self._ledger.data("malformed", planned.batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=safe_files.open_new) as file:
            file.writelines(json.dumps(row, default=str) + "\n" for row in malformed.to_pylist())

    def _update_outputs(self, report: RunReport) -> None:
        """Bring the sinks up to the last batch. Sinks at the same batch share the work."""
        newest = self._ledger.last()
        behind: dict[int, list[str]] = {}
        for name, sink in self._sinks.items():
            with report.record_failure(name):
                held = sink.last(self._ledger.job)
                behind.setdefault(newest - report.batches if held is None else held, []).append(name)
        for since, names in behind.items():
            if since < newest:
                self._update_group(names, since, newest, report)

    def _update_group(self, names: list[str], since: int, newest: int, report: RunReport) -> None:
        merged = partials.changed(self._ledger, self._metrics, since, self._sketches.unite)
        found = rows.of_partials(merged, self._metrics, self._sketches.estimate)
        for name in names:
            with report.record_failure(name):
                self._sinks[name].write(self._ledger.job, newest, found)
                report.rows[name] = len(found)
                LOG.info("batch %d: in %s", newest, name)


@contextlib.contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame that is used more than once."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
