"""Spans, and reading them without a group."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from notifier_kafka.contract.driver import Delivery, Partition, Span
from notifier_kafka.errors import TopicNotFound, TransportUnavailable

from ..clients.protocol import EARLIEST, LATEST, Admin, Reader
from ..errors import AccessDenied
from ..properties import REQUEST_TIMEOUT_SECONDS

Answer = TypeVar("Answer")
BATCH = 1_000
LATEST_MS = 2**62  # the end of time: more than the protocol can say, and infinity
ROUNDING = 1e-3  # of a millisecond: what a time loses as a float of seconds
WAIT = 0.5
PAUSE = 0.05
PATIENCE = 10.0  # seconds without any progress after which the log counts as unavailable


def offsets(admin: Admin, moments: Mapping[Partition, int]) -> dict[Partition, int]:
    """Find offsets; a topic just made, or one that changes its leader, is asked again."""
    return patiently(lambda: admin.offsets(moments))


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask again for as long as one call may take, while an error may pass."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except TransportUnavailable as error:
            if isinstance(error, AccessDenied) or time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)


def spans(
    admin: Admin, parts: Iterable[Partition], since: float | None = None, until: float | None = None
) -> list[Span]:
    """Find what partitions hold, or what they took from ``since`` to before ``until``."""
    parts = sorted(parts)
    if not parts:
        return []
    # The ends before the times: a record that comes in between is in neither.
    latest = offsets(admin, dict.fromkeys(parts, LATEST))
    earliest = offsets(admin, dict.fromkeys(parts, EARLIEST))
    starts = earliest if since is None else moments(admin, parts, since, latest)
    stops = latest if until is None else moments(admin, parts, until, latest)
    return [Span(part, *_between(starts[part], stops[part], earliest[part])) for part in parts]


def moments(
    admin: Admin, parts: Sequence[Partition], moment: float, latest: Mapping[Partition, int]
) -> dict[Partition, int]:
    """Find the first offsets at or after a moment; the end where there is none."""
    if not moment * 1000 < LATEST_MS:
        return {part: latest[part] for part in parts}
    found = offsets(admin, dict.fromkeys(parts, max(0, math.ceil(moment * 1000 - ROUNDING))))
    return {part: latest[part] if found.get(part, -1) < 0 else found[part] for part in parts}


def existing(admin: Admin, topics: Iterable[str]) -> set[Partition]:
    """List the partitions of those topics that are there."""
    there: set[Partition] = set()
    for topic in topics:
        try:
            there.update(one.partition for one in admin.partitions(topic))
        except TopicNotFound:
            continue
    return there


def ends(admin: Admin, parts: Iterable[Partition]) -> dict[Partition, int]:
    """Find the ends of partitions, without those whose topic is gone."""
    wanted = set(parts)
    asked = existing(admin, {part.topic for part in wanted}) & wanted
    return offsets(admin, dict.fromkeys(asked, LATEST)) if asked else {}


def within(admin: Admin, span: Span) -> Span:
    """Cut a span to what its partition holds: nothing comes from behind the end, ever."""
    if span.partition not in existing(admin, [span.partition.topic]):
        raise TopicNotFound(f"topic {span.partition.topic} has no partition {span.partition.number}")
    there = dict.fromkeys([span.partition], LATEST)
    return Span(span.partition, max(0, span.start), min(span.stop, offsets(admin, there)[span.partition]))


def deliveries(make: Callable[[Span], Reader], span: Span) -> Iterator[Delivery]:
    """Read a span; ends past its stop, over gaps as well."""
    if span.start >= span.stop:
        return
    reader = make(span)
    try:
        idle = 0.0
        while (position := reader.position()) < span.stop:
            found = reader.poll(min(BATCH, span.stop - position), WAIT)
            for delivery in found:
                if delivery.offset >= span.stop:
                    return
                yield delivery
            idle = 0.0 if found or reader.position() > position else idle + WAIT
            if idle >= PATIENCE:
                raise TransportUnavailable(f"{span.partition}: nothing came at offset {position}")
    finally:
        reader.close()


def _between(start: int, stop: int, earliest: int) -> tuple[int, int]:
    stop = max(stop, earliest)
    return min(max(start, earliest), stop), stop
