"""The workload of all benchmarks: notifications with a payload of 200 bytes."""

from typing import Any

from benchmarks.bare_clients import InvalidMeasurement
from benchmarks.child_protocol import BATCH_RECORDS, EVENT_TYPE, PAYLOAD, PUBLISHER_ID, TIMEOUT_SECONDS
from notifier_kafka import NotificationTransport, Notifier


def connected_notifier(bus: NotificationTransport, topic: str) -> Notifier:
    """Return a notifier that is connected: it has published once."""
    # One key for all would use one partition only.
    made = Notifier(bus, PUBLISHER_ID, driver="messagingv2", topics=[topic], key="none")
    made.prepare(wait=True).info({}, EVENT_TYPE, PAYLOAD)
    return made


def one_by_one(notifier: Notifier, count: int, payload: Any = PAYLOAD) -> None:
    """Publish one by one until all is durable."""
    info = notifier.info
    for _ in range(count):
        info({}, EVENT_TYPE, payload)
    flush_all(notifier)


def send_many(notifier: Notifier, count: int) -> None:
    """Publish in bulk until all is durable."""
    for begin in range(0, count, BATCH_RECORDS):
        notifier.send_many({}, "info", [(EVENT_TYPE, PAYLOAD)] * min(BATCH_RECORDS, count - begin))
    flush_all(notifier)


def flush_all(notifier: Notifier) -> None:
    """Wait until all is durable; nothing may be lost."""
    unsent = notifier.flush(TIMEOUT_SECONDS)
    lost = {k: v for k, v in notifier.transport.counters.counts().items() if k.startswith("lost")}
    if unsent or lost:
        raise InvalidMeasurement(f"{unsent} unsent, lost {lost}")
