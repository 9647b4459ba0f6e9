"""Giving endpoints what a log holds, without a group."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from notifier_kafka.contract.driver import Delivery, Driver, Span
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening import start_from
from notifier_kafka.listening.dispatcher import HANDLED, Dispatcher
from notifier_kafka.listening.start_from import Place
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec


def spans(driver: Driver, names: Sequence[str], since: Place, until: float | None) -> list[Span]:
    """Find what the topics hold from ``since`` to before ``until``."""
    there = driver.spans(names)
    stops = {s.partition: s.stop for s in driver.spans(names, until=until)} if until is not None else {}
    starts = start_from.positions(driver, there, since)
    found = []
    for span in there:
        if (start := starts.get(span.partition)) is not None:
            stop = min(span.stop, stops.get(span.partition, span.stop))
            found.append(span._replace(start=start, stop=max(start, stop)))
    return found


def replay(driver: Driver, chosen: Sequence[Span], dispatcher: Dispatcher, limit: int) -> Counter[str]:
    """Give the endpoints what lies in spans; count what became of it."""
    counts: Counter[str] = Counter()
    for span in chosen:
        deliveries = driver.read(span)
        while batch := list(itertools.islice(deliveries, limit)):
            notifications = list(_decoded(batch, counts))
            for verdict in dispatcher.dispatch(notifications):
                counts["handled" if verdict == HANDLED else "refused"] += 1
    return counts


def _decoded(batch: Sequence[Delivery], counts: Counter[str]) -> Iterator[Notification]:
    for delivery in batch:
        try:
            yield codec.decode(delivery.record)
        except DecodeError:
            counts["malformed"] += 1
