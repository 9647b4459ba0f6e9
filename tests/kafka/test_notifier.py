"""A notifier and a listener on Kafka: receipts, transactions and large notifications."""

import base64
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Partition, Receipt
from notifier_kafka.errors import MessageDeliveryFailure
from notifier_kafka.listening.listener import get_notification_listener
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport
from notifier_kafka.target import Target
from tests.shared.kafka.kafka_rig import until

TEN_MEGABYTES = 10_000_000
Bus = Callable[..., NotificationTransport]


class Endpoint:
    """Keeps payloads."""

    def __init__(self) -> None:
        self.handled: list[Any] = []

    def info(self, _context: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> None:
        self.handled.append(payload)


@pytest.fixture
def bus(kafka_cluster: Any, client: str) -> Iterator[Bus]:
    """Make a transport with values for options of the driver."""
    made: list[NotificationTransport] = []

    def make(**values: Any) -> NotificationTransport:
        conf = cfg.ConfigOpts()
        conf([], project="test", default_config_files=[], default_config_dirs=[])
        query = "&".join(f"{name}={value}" for name, value in {"topic_partitions": 1, **values}.items())
        made.append(get_notification_transport(conf, f"{kafka_cluster.url}/?client={client}&{query}"))
        return made[-1]

    yield make
    for transport in made:
        transport.cleanup()


def notifier(transport: NotificationTransport, topic: str) -> Notifier:
    return Notifier(transport, "host1", "messagingv2", topics=[topic])


def heard(transport: NotificationTransport, topic: str, pool: str, last: Any) -> list[Any]:
    """Listen until ``last`` came."""
    endpoint = Endpoint()
    with get_notification_listener(transport, [Target(topic=topic)], [endpoint], pool=pool):
        until(lambda: last in endpoint.handled, f"{str(last)[:20]!r}")
    return endpoint.handled


def test_who_waits_is_told_topic_partition_and_offset(bus: Bus, topic: str) -> None:
    waiting = notifier(bus(), topic).prepare(wait=True)
    receipts = [receipt for n in range(3) for receipt in waiting.info({}, "event", n) or ()]
    assert receipts == [Receipt(Partition(f"{topic}.info", 0), n) for n in range(3)]


def test_a_transaction_is_told_where_all_of_it_is(bus: Bus, topic: str) -> None:
    transport = bus()
    sender = notifier(transport, topic)
    with sender.transaction() as receipts:
        for n in range(3):
            sender.info({}, "event", n)
        assert receipts == []
    assert receipts == [Receipt(Partition(f"{topic}.info", 0), n) for n in range(3)]
    assert heard(transport, topic, topic, 2) == [0, 1, 2]


def test_who_reads_what_is_committed_hears_nothing_of_an_aborted_transaction(bus: Bus, topic: str) -> None:
    transport = bus(batch_size=16384)
    transport.driver.admin().create_topic(f"{topic}.info", 1, {"max.message.bytes": "20000"})
    sender = notifier(transport, topic)

    def send(*payloads: str, then: Callable[[], object] = bool) -> None:
        with sender.transaction():
            for payload in payloads:
                sender.info({}, "event", payload)
            then()

    with pytest.raises(ZeroDivisionError):
        send("never sent", then=lambda: 1 / 0)
    with pytest.raises(MessageDeliveryFailure, match=r"max\.message\.bytes"):
        send("aborted", os.urandom(20_000).hex())
    send("committed")
    assert heard(transport, topic, f"{topic}-1", "committed") == ["committed"]
    careless = bus(isolation_level="read_uncommitted")
    assert heard(careless, topic, f"{topic}-2", "committed") == ["aborted", "committed"]


def test_ten_megabytes_of_text_work_with_one_option(bus: Bus, topic: str) -> None:
    transport = bus(max_request_size=10_485_760)
    text = base64.b64encode(os.urandom(TEN_MEGABYTES * 3 // 4)).decode()
    assert len(text) == TEN_MEGABYTES
    receipts = notifier(transport, topic).prepare(wait=True).info({}, "event", text)
    assert receipts == [Receipt(Partition(f"{topic}.info", 0), 0)]
    assert heard(transport, topic, topic, text) == [text]
