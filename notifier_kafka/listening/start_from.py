"""Start positions: from what a person means ("earliest", a time, an offset) to offsets; and lag."""

from collections.abc import Mapping, Sequence

from notifier_kafka.contract.driver import Driver, Partition, Positions, Span, Start

StartFrom = Start | int | Mapping[tuple[str, int], int]
"""An end of the log, a time in seconds since the epoch (float), an offset (int), or offsets by partition."""


def resolve(driver: Driver, spans: Sequence[Span], start: StartFrom) -> Positions:
    """Find the position that ``start`` means in each of ``spans``: the nearest end if it is outside."""
    if isinstance(start, Mapping):
        wanted = {Partition(*partition): offset for partition, offset in start.items()}
        return {s.partition: _within(s, wanted[s.partition]) for s in spans if s.partition in wanted}
    if start == "earliest":
        return {span.partition: span.start for span in spans}
    if start == "latest":
        return {span.partition: span.stop for span in spans}
    if isinstance(start, int):
        return {span.partition: _within(span, start) for span in spans}
    topics = list({span.partition.topic for span in spans})
    since = {s.partition: s.start for s in driver.spans(topics, since=start)}
    # Records that arrived after ``spans`` was read are beyond its stop.
    return {s.partition: min(since.get(s.partition, s.stop), s.stop) for s in spans}


def lag(driver: Driver, group: str, topics: Sequence[str]) -> dict[Partition, int]:
    """Count the records behind the group's position in each partition; all of them if it has no position."""
    committed = driver.admin().describe_group(group).positions
    return {
        s.partition: s.stop - _within(s, committed.get(s.partition, s.start)) for s in driver.spans(topics)
    }


def _within(span: Span, offset: int) -> int:
    return min(max(span.start, offset), span.stop)
