"""Offset arithmetic: what the next batch reads. Nothing is read or written here.

Counted offsets are ranges, not one position, so that a backfill of an earlier time counts nothing
twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from notifier_kafka.contract.driver import Partition, Span
from notifier_kafka.errors import LogUnusable

Ranges = tuple[tuple[int, int], ...]
"""Offset ranges, ascending and disjoint: each begins at its first number and ends before its second.

The position is the end of the last range. That may be an empty range beyond what is counted: then
the offsets between them were left out, or lost.
"""

Counted = Mapping[Partition, Ranges]


@dataclass(frozen=True)
class Plan:
    """The frozen spans of a batch."""

    batch: int
    spans: tuple[Span, ...]

    @property
    def records(self) -> int:
        return records(self.spans)


def records(spans: Iterable[Span]) -> int:
    """Return how many records spans hold, at most."""
    return sum(span.stop - span.start for span in spans)


def add(counted: Counted, spans: Iterable[Span]) -> dict[Partition, Ranges]:
    """Return what is counted once the spans are."""
    made = dict(counted)
    for span in spans:
        merged: list[tuple[int, int]] = []
        for start, stop in sorted([*made.get(span.partition, ()), span[1:]]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        made[span.partition] = tuple(each for each in merged if each[0] < each[1] or each is merged[-1])
    return made


def unplaced(spans: Iterable[Span], counted: Counted, planned: Iterable[Span], *, lost: bool) -> list[Span]:
    """Return empty spans at the positions of partitions of which nothing is counted or planned.

    With ``lost``, partitions whose next records were deleted are included.
    """
    there = {span.partition for span in planned}
    found = []
    for span in spans:
        ranges = counted.get(span.partition)
        if span.partition not in there and (not ranges or (lost and ranges[-1][1] < span.start)):
            found.append(span._replace(stop=span.start))
    return found


def uncounted(span: Span, ranges: Ranges) -> list[Span]:
    """Return the parts of a span that are in none of the ranges."""
    left = []
    at = span.start
    for start, stop in ranges:
        if start == stop:
            continue
        if at < min(start, span.stop):
            left.append(Span(span.partition, at, min(start, span.stop)))
        at = max(at, stop)
    if at < span.stop:
        left.append(Span(span.partition, at, span.stop))
    return left


def following(held: Sequence[Span], counted: Counted, start: str) -> list[Span]:
    """Return what follows the counted offsets, up to the ends of what the log holds.

    Of a partition that was never counted this is everything. With ``start`` ``latest``, when
    nothing at all was counted, it is an empty span at the partition's end.
    """
    found = []
    for span in held:
        ranges = counted.get(span.partition, ())
        first = max(ranges[-1][1], span.start) if ranges else span.start
        if start == "latest" and not counted:
            first = span.stop
        if first <= span.stop:
            found.append(Span(span.partition, first, span.stop))
    return found


def passed_over(found: Iterable[Span], held: Iterable[Span], counted: Counted) -> list[Span]:
    """Return what the log has between the counted offsets and the spans to count next."""
    first = {span.partition: span.start for span in held}
    left: dict[Partition, Span] = {}
    for span in found:
        ranges = counted.get(span.partition)
        if ranges and span.stop > ranges[-1][1] and span.partition not in left:
            at = max(ranges[-1][1], first[span.partition])
            left[span.partition] = Span(span.partition, at, max(at, span.start))
    return [span for span in left.values() if span.start < span.stop]


def check_retention(held: Sequence[Span], counted: Counted) -> list[tuple[Span, int]]:
    """Return the partitions whose next records were deleted, each with their number.

    Raises ``LogUnusable`` for one that ends before what was counted of it.
    """
    lost = []
    for span in held:
        ranges = counted.get(span.partition, ())
        position = ranges[-1][1] if ranges else span.start
        topic, number = span.partition
        if span.stop < position:
            raise LogUnusable(
                f"topic {topic}, partition {number} ends at offset {span.stop}, and offsets up to "
                f"{position} were counted: the topic was created again; count it with another checkpoint_dir"
            )
        if span.start > position:
            lost.append((span, span.start - position))
    return lost


def limit(spans: Sequence[Span], most: int) -> tuple[Span, ...]:
    """Return the beginnings of the spans with at most so many records, shared out evenly."""
    left = {index: span.stop - span.start for index, span in enumerate(spans)}
    taken = dict.fromkeys(left, 0)
    while most > 0 and left:
        share = max(1, most // len(left))
        for index in list(left):
            some = min(share, left[index], most)
            taken[index] += some
            left[index] -= some
            most -= some
            if not left[index]:
                del left[index]
    parts = (Span(span.partition, span.start, span.start + taken[i]) for i, span in enumerate(spans))
    return tuple(part for part in parts if part.stop > part.start)
