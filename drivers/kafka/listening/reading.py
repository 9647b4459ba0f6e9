"""Spans of offsets, and reading them without a group."""

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
BATCH_RECORDS = 1_000
LATEST_MS = 2**62  # a later time, or infinity, is after every record: the protocol has no number for it
ROUNDING_MS = 1e-3  # what a time loses as a float of seconds
POLL_SECONDS = 0.5
RETRY_PAUSE_SECONDS = 0.05
PROGRESS_TIMEOUT_SECONDS = 10.0  # without progress for so long, the log counts as unavailable


def offsets(admin: Admin, moments: Mapping[Partition, int]) -> dict[Partition, int]:
    """Find offsets; retry while a topic is new or changes its leader."""
    return with_retries(lambda: admin.offsets(moments))


def with_retries(ask: Callable[[], Answer]) -> Answer:
    """Retry a request while its error is temporary, for as long as one call may take."""
    deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
    while True:
        try:
            return ask()
        except TransportUnavailable as error:
            if isinstance(error, AccessDenied) or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_PAUSE_SECONDS)


def spans(
    admin: Admin, parts: Iterable[Partition], since: float | None = None, until: float | None = None
) -> list[Span]:
    """Find the spans of partitions, or those of the records from ``since`` to before ``until``."""
    parts = sorted(parts)
    if not parts:
        return []
    # First the ends, then the times: a record that comes in between is in neither.
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
    found = offsets(admin, dict.fromkeys(parts, max(0, math.ceil(moment * 1000 - ROUNDING_MS))))
    return {part: latest[part] if found.get(part, -1) < 0 else found[part] for part in parts}


def existing(admin: Admin, topics: Iterable[str]) -> set[Partition]:
    """List the partitions of those topics that exist."""
    found: set[Partition] = set()
    for topic in topics:
        try:
            found.update(one.partition for one in admin.partitions(topic))
        except TopicNotFound:
            continue
    return found


def ends(admin: Admin, parts: Iterable[Partition]) -> dict[Partition, int]:
    """Find the ends of partitions, without those whose topic does not exist."""
    wanted = set(parts)
    asked = existing(admin, {part.topic for part in wanted}) & wanted
    return offsets(admin, dict.fromkeys(asked, LATEST)) if asked else {}


def within(admin: Admin, span: Span) -> Span:
    """Cut a span at the ends of its partition: behind them there is nothing to wait for."""
    if span.partition not in existing(admin, [span.partition.topic]):
        raise TopicNotFound(f"topic {span.partition.topic} has no partition {span.partition.number}")
    end = dict.fromkeys([span.partition], LATEST)
    return Span(span.partition, max(0, span.start), min(span.stop, offsets(admin, end)[span.partition]))


def deliveries(make: Callable[[Span], Reader], span: Span) -> Iterator[Delivery]:
    """Read a span to its stop, also when there are gaps."""
    if span.start >= span.stop:
        return
    reader = make(span)
    try:
        idle = 0.0
        while (position := reader.position()) < span.stop:
            found = reader.poll(min(BATCH_RECORDS, span.stop - position), POLL_SECONDS)
            for delivery in found:
                if delivery.offset >= span.stop:
                    return
                yield delivery
            idle = 0.0 if found or reader.position() > position else idle + POLL_SECONDS
            if idle >= PROGRESS_TIMEOUT_SECONDS:
                raise TransportUnavailable(f"{span.partition}: no progress at offset {position}")
    finally:
        reader.close()


def _between(start: int, stop: int, earliest: int) -> tuple[int, int]:
    stop = max(stop, earliest)
    return min(max(start, earliest), stop), stop
