"""Places on a log: from what a person means to the positions of a group."""

from collections.abc import Mapping, Sequence

from notifier_kafka.contract.driver import Driver, Partition, Positions, Span, Start

Place = Start | int | Mapping[tuple[str, int], int]
"""An end of the log, a time as seconds since the epoch, an offset (an int), or one for each partition."""


def positions(driver: Driver, there: Sequence[Span], place: Place) -> Positions:
    """Find where ``place`` is in what ``there`` says there is: its nearest end if it is not within."""
    if isinstance(place, Mapping):
        wanted = {Partition(*partition): offset for partition, offset in place.items()}
        return {s.partition: _within(s, wanted[s.partition]) for s in there if s.partition in wanted}
    if place == "earliest":
        return {span.partition: span.start for span in there}
    if place == "latest":
        return {span.partition: span.stop for span in there}
    if isinstance(place, int):
        return {span.partition: _within(span, place) for span in there}
    names = list({span.partition.topic for span in there})
    since = {s.partition: s.start for s in driver.spans(names, since=place)}
    # A record that came meanwhile is in the second look only.
    return {s.partition: min(since.get(s.partition, s.stop), s.stop) for s in there}


def lag(driver: Driver, group: str, names: Sequence[str]) -> dict[Partition, int]:
    """Count how many records of the topics lie behind the group's positions; without one, all there are."""
    reached = driver.admin().describe_group(group).positions
    return {s.partition: s.stop - _within(s, reached.get(s.partition, s.start)) for s in driver.spans(names)}


def _within(span: Span, offset: int) -> int:
    return min(max(span.start, offset), span.stop)
