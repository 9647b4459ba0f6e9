"""Replay: gives the endpoints what a log holds, without a group."""

import itertools
import logging
from collections import Counter
from collections.abc import Iterator, Sequence

from notifier_kafka.contract.driver import Delivery, Driver, Span
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening import start_from
from notifier_kafka.listening.dispatcher import HANDLED, Dispatcher
from notifier_kafka.listening.start_from import StartFrom
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)


def spans(driver: Driver, topics: Sequence[str], since: StartFrom, until: float | None) -> list[Span]:
    """Find what the topics hold from ``since`` to before ``until``."""
    held = driver.spans(topics)
    stops = {s.partition: s.stop for s in driver.spans(topics, until=until)} if until is not None else {}
    starts = start_from.resolve(driver, held, since)
    found = []
    for span in held:
        if (start := starts.get(span.partition)) is not None:
            stop = min(span.stop, stops.get(span.partition, span.stop))
            found.append(span._replace(start=start, stop=max(start, stop)))
    return found


def replay(driver: Driver, chosen: Sequence[Span], dispatcher: Dispatcher, limit: int) -> Counter[str]:
    """Give the records of spans to the endpoints, up to ``limit`` at a time; count the results."""
    counts: Counter[str] = Counter()
    for span in chosen:
        deliveries = driver.read(span)
        while batch := list(itertools.islice(deliveries, limit)):
            notifications = list(_decoded(batch, counts))
            # One error may be the verdict of a whole list, with other errors in between.
            logged: dict[int, BaseException] = {}
            for notification, verdict in zip(notifications, dispatcher.dispatch(notifications), strict=True):
                counts["handled" if verdict == HANDLED else "refused"] += 1
                if (error := verdict.error) is not None and id(error) not in logged:
                    logged[id(error)] = error
                    _log(notification, error)
    return counts


def _log(notification: Notification, error: BaseException) -> None:
    LOG.error(
        "An endpoint raised %s during a replay: event type %a, message id %a",
        type(error).__name__,
        notification.event_type,
        notification.message_id,
        exc_info=error,
    )


def _decoded(batch: Sequence[Delivery], counts: Counter[str]) -> Iterator[Notification]:
    for delivery in batch:
        try:
            yield codec.decode(delivery.record)
        except DecodeError:
            counts["malformed"] += 1
