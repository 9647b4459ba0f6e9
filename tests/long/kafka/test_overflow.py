"""An outbox that is full over Kafka: each policy does what it says, and what is lost is counted."""

import contextlib
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.errors import OutboxFull
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.wire import codec
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.kafka_rig import PATIENCE, hung

ROOM, OFFERED = 100, 1_000


@contextlib.contextmanager
def sending(url: str, topic: str, policy: str, told: list[Any]) -> Iterator[notifier.Notifier]:
    conf = cfg.ConfigOpts()
    options.register(conf)
    for name, value in {"outbox_records": ROOM, "on_full": policy, "block_timeout": PATIENCE}.items():
        conf.set_override(name, value, group=options.NOTIFICATIONS)
    bus = transport.get_notification_transport(conf, url, on_failure=lambda one, _: told.append(one.payload))
    try:
        yield notifier.Notifier(bus, "p", driver="messagingv2", topics=[topic])
    finally:
        bus.cleanup()


def arrived(sender: notifier.Notifier, topic: str) -> list[Any]:
    """Return what is on the topic, without the first that warmed it up."""
    driver = sender.transport.driver
    (span,) = driver.spans([f"{topic}.info"])
    return [codec.decode(each.record).payload for each in driver.read(span)][1:]


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "raise"])
def test_a_full_outbox_does_what_was_asked_for(
    fragile: Cluster, client: str, topic: str, policy: str
) -> None:
    told: list[Any] = []
    raised: list[int] = []
    with sending(f"{fragile.url}/?client={client}&topic_partitions=1", topic, policy, told) as sender:
        sender.info({}, "warm.up", -1)
        assert sender.flush(PATIENCE) == 0
        with hung(fragile):
            for number in range(OFFERED):
                try:
                    sender.info({}, "e", number)
                except OutboxFull:
                    raised.append(number)
        assert sender.flush(PATIENCE) == 0
        kept = arrived(sender, topic)
        lost = sender.stats().lost
    assert len(kept) == ROOM
    assert sorted([*kept, *(raised if policy == "raise" else told)]) == list(range(OFFERED))
    assert kept == sorted(kept)
    if policy == "drop_oldest":
        assert kept[-1] == OFFERED - 1
    else:
        assert kept == list(range(ROOM))
    assert lost == ({} if policy == "raise" else {"OutboxFull": OFFERED - ROOM})


def test_block_waits_for_room_and_loses_nothing(fragile: Cluster, client: str, topic: str) -> None:
    url = f"{fragile.url}/?client={client}&topic_partitions=1"
    with sending(url, topic, "block", []) as sender, futures.ThreadPoolExecutor(1) as pool:
        sender.info({}, "warm.up", -1)
        assert sender.flush(PATIENCE) == 0
        with hung(fragile):
            for number in range(ROOM):
                sender.info({}, "e", number)
            waiting = pool.submit(sender.info, {}, "e", ROOM)
            with pytest.raises(TimeoutError):
                waiting.result(0.5)
        waiting.result(PATIENCE)
        assert sender.flush(PATIENCE) == 0
        assert arrived(sender, topic) == list(range(ROOM + 1))
        assert sender.stats().lost == {}
