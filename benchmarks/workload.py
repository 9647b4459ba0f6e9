"""The work that everything is measured with: notifications with a payload of 200 bytes."""

from typing import Any

from benchmarks.bare_clients import Void
from benchmarks.child_protocol import BATCH, EVENT, PATIENCE, PAYLOAD, PUBLISHER
from notifier_kafka.publishing import notifier, transport


def sender(bus: transport.NotificationTransport, topic: str) -> notifier.Notifier:
    """Make a notifier that has published one, so that it is connected."""
    # One key for all would fill one partition.
    made = notifier.Notifier(bus, PUBLISHER, driver="messagingv2", topics=[topic], key="none")
    made.prepare(wait=True).info({}, EVENT, PAYLOAD)
    return made


def one_by_one(through: notifier.Notifier, count: int, payload: Any = PAYLOAD) -> None:
    """Publish until all is durable."""
    info = through.info
    for _ in range(count):
        info({}, EVENT, payload)
    expect_all_durable(through)


def send_many(through: notifier.Notifier, count: int) -> None:
    """Publish in bulk until all is durable."""
    for begin in range(0, count, BATCH):
        through.send_many({}, "info", [(EVENT, PAYLOAD)] * min(BATCH, count - begin))
    expect_all_durable(through)


def expect_all_durable(through: notifier.Notifier) -> None:
    """Wait; nothing may be lost."""
    unsent = through.flush(PATIENCE)
    lost = {k: v for k, v in through.transport.counters.counts().items() if k.startswith("lost")}
    if unsent or lost:
        raise Void(f"{unsent} unsent, lost {lost}")
