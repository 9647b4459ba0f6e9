"""Headers whose names are not UTF-8: brokers do not look, so whoever may write to a topic can plant them."""

import contextlib
from typing import Any

import kafka
import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Delivery
from notifier_kafka.listening.listener import get_notification_listener
from notifier_kafka.publishing.transport import get_notification_transport
from notifier_kafka.target import Target
from notifier_kafka.wire import topic_names
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, gather, until

SOUND = ("sound", b"1")
AS_JAVA = ("bad-\ufffd", b"2")


class Bad(str):
    """A name that a producer writes as bytes that are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        return b"bad-\xff"


def plant(cluster: Any, topic: str, values: list[bytes], codec_name: str | None = None) -> None:
    """Publish values in one batch, all but the first and the last with such a header."""
    made = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", linger_ms=200, compression_type=codec_name
    )
    bad: list[tuple[str, bytes]] = [SOUND, (Bad("bad"), b"2")]
    headers = [[SOUND], *[bad] * (len(values) - 2), [SOUND]]
    with contextlib.closing(made) as producer:
        sent = [
            producer.send(topic, value, headers=found, partition=0)
            for value, found in zip(values, headers, strict=True)
        ]
        for each in sent:
            each.get(PATIENCE)


@pytest.mark.parametrize("codec_name", [None, "gzip"])
def test_what_stands_behind_such_a_name_comes_and_so_does_the_record(
    connect: Connect, kafka_cluster: Any, topic: str, client: str, codec_name: str | None
) -> None:
    driver = connect(topic_partitions=1)
    driver.admin().create_topic(topic)
    plant(kafka_cluster, topic, [b"before", b"with", b"with too", b"behind"], codec_name)
    kept = () if client == "confluent-kafka" else (SOUND, AS_JAVA)

    def seen(found: list[Delivery]) -> list[Any]:
        return [(d.offset, d.record.value, d.record.headers) for d in found]

    expected = [
        (0, b"before", (SOUND,)),
        (1, b"with", kept),
        (2, b"with too", kept),
        (3, b"behind", (SOUND,)),
    ]
    assert seen(gather(driver.subscribe([topic], topic, "earliest"), 4)) == expected
    assert seen([d for span in driver.spans([topic]) for d in driver.read(span)]) == expected


class Endpoint:
    def __init__(self) -> None:
        self.handled: list[int] = []

    def info(self, _context: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> None:
        self.handled.append(payload)


def test_a_listener_handles_what_is_a_notification_and_sets_the_rest_aside(
    kafka_cluster: Any, topic: str, client: str
) -> None:
    values = [b'{"priority": "INFO", "payload": %d}' % number for number in range(4)]
    values[2] = b"none"
    plant(kafka_cluster, topic_names.bus_topic(topic, "info", ""), values)
    conf = cfg.ConfigOpts()
    conf([], project="test", default_config_files=[], default_config_dirs=[])
    endpoint = Endpoint()
    with contextlib.ExitStack() as stack:
        bus = get_notification_transport(conf, f"{kafka_cluster.url}/?client={client}")
        stack.callback(bus.cleanup)
        listening = get_notification_listener(bus, [Target(topic=topic)], [endpoint], pool=topic)
        listening.start()
        group = bus.driver.admin().describe_group
        until(lambda: set(group(topic).lag.values()) == {0}, "all of it to be done with")
        listening.stop()
        listening.wait()
        spans = bus.driver.spans([topic_names.dead_letter_topic(topic)])
        (dead,) = [delivery for span in spans for delivery in bus.driver.read(span)]
        assert dead.record.value == b"none"
        assert ("origin-offset", b"2") in dead.record.headers
        assert (AS_JAVA in dead.record.headers) is (client == "kafka-python")
        assert endpoint.handled == [0, 1, 3]
