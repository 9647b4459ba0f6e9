"""Finds out what a run would read, without Spark."""

from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Driver, Span
from notifier_kafka.errors import LogUnusable
from spark_sinks.job.run_limits import RunLimits
from spark_sinks.sources import topic_patterns
from spark_sinks.state import plan
from spark_sinks.state.ledger import Ledger
from spark_sinks.state.plan import Plan

Loss = tuple[str, int]
"""A sentence about records that were deleted before they were counted, and their number."""


class Found(NamedTuple):
    """What to count, what is lost, and sentences about what is left out."""

    spans: list[Span]
    lost: list[Loss]
    left_out: list[str]


def spans(driver: Driver, ledger: Ledger, wanted: Sequence[str], limits: RunLimits) -> Found:
    """Find what there is to count, however much: ``limits.records`` is ignored."""
    names = topic_patterns.existing(driver, wanted, limits.own_topics)
    held, counted = driver.spans(names), ledger.counted()
    lost = [
        (
            f"topic {span.partition.topic}, partition {span.partition.number}: {records} records before "
            f"offset {span.start} were deleted before they were counted",
            records,
        )
        for span, records in plan.check_retention(held, counted)
    ]
    if limits.since is not None:
        found = driver.spans(names, limits.since, limits.until)
        # For a partition without records in that time, the position to continue from is stored.
        unknown = [span for span in found if span.start == span.stop and span.partition not in counted]
        wide = uncounted(ledger, found)
        return Found(wide + unknown, lost, _left_out(plan.passed_over(wide, held, counted)))
    ends = held if limits.until is None else driver.spans(names, None, limits.until)
    return Found(plan.following(ends, counted, limits.start), lost, [])


def _left_out(spans: Sequence[Span]) -> list[str]:
    return [
        f"{stop - start} records of {topic}[{number}] before --since are not counted yet and are left out: "
        f"offsets {start} to {stop}; an earlier --since counts them"
        for (topic, number), start, stop in spans
    ]


def gone(driver: Driver, ledger: Ledger) -> set[str]:
    """Return the topics that were counted and no longer exist."""
    counted = {partition.topic for partition in ledger.counted()}
    return counted - set(driver.admin().list_topics()) if counted else counted


def readable(driver: Driver, planned: Plan) -> tuple[Plan, list[Loss]]:
    """Return the part of a batch that the log still has, and what is lost.

    Raises ``LogUnusable`` when a partition ends before the batch does.
    """
    spans = [span for span in planned.spans if span.start < span.stop]
    topics = sorted({span.partition.topic for span in spans})
    there = set(driver.admin().list_topics())
    held = {span.partition: span for span in driver.spans([topic for topic in topics if topic in there])}
    left, lost = [], []
    for span in spans:
        topic, number = span.partition
        start, stop = (held[span.partition][1:]) if span.partition in held else (span.stop, span.stop)
        if stop < span.stop:
            raise LogUnusable(
                f"topic {topic}, partition {number} ends at offset {stop}, and batch {planned.batch} at "
                f"{span.stop}: the topic was created again; count it with another checkpoint_dir"
            )
        if start > span.start:
            records = min(start, span.stop) - span.start
            why = "were deleted" if span.partition in held else "were deleted with the topic"
            lost.append(
                (
                    f"topic {topic}, partition {number}: {records} records of batch {planned.batch} {why} "
                    "before they were counted",
                    records,
                )
            )
        if start < span.stop:
            left.append(span._replace(start=max(start, span.start)))
    return Plan(planned.batch, tuple(left)), lost


def unplaced(
    ledger: Ledger, spans: Sequence[Span], limits: RunLimits, planned: Sequence[Span] = ()
) -> list[Span]:
    """Return empty spans at the positions to continue from, for partitions that a batch does not read."""
    return plan.unplaced(spans, ledger.counted(), planned, lost=limits.since is None)


def uncounted(ledger: Ledger, found: Sequence[Span]) -> list[Span]:
    """Return the parts of spans that are not counted yet."""
    counted = ledger.counted()
    return [part for span in found for part in plan.uncounted(span, counted.get(span.partition, ()))]
