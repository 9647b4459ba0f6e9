"""What a run would read, told without Spark."""

from collections.abc import Sequence

from notifier_kafka.driver import Driver, Span
from spark_sinks import plan, topics
from spark_sinks.bounds import Bounds
from spark_sinks.ledger import Ledger

Loss = tuple[str, int]
"""What was deleted before it was counted, in words, and how many records that are."""


def spans(
    driver: Driver, ledger: Ledger, wanted: Sequence[str], bounds: Bounds
) -> tuple[list[Span], list[Loss]]:
    """Return what is to be counted, and what is lost; ``bounds.records`` is not looked at."""
    names = topics.existing(driver, wanted)
    held, counted = driver.spans(names), ledger.counted()
    lost = [
        (
            f"topic {span.partition.topic}, partition {span.partition.number}: {records} records before "
            f"offset {span.start} were deleted before they were counted",
            records,
        )
        for span, records in plan.check_retention(held, counted)
    ]
    if bounds.since is not None:
        return uncounted(ledger, driver.spans(names, bounds.since, bounds.until)), lost
    ends = held if bounds.until is None else driver.spans(names, None, bounds.until)
    return plan.following(ends, counted, bounds.start), lost


def uncounted(ledger: Ledger, found: Sequence[Span]) -> list[Span]:
    """Return the parts of spans that are not counted yet."""
    counted = ledger.counted()
    return [part for span in found for part in plan.uncounted(span, counted.get(span.partition, ()))]
