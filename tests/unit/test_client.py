"""The plain bytes client, over SQLite; over Kafka in tests/kafka."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_lock import locked

from notifier_kafka import client, client_config
from notifier_kafka.errors import ConfigurationError, DeliveryFailed

Config = Callable[..., str]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    def make(kind: str, **properties: Any) -> str:
        spelled = {name.replace("_", "."): value for name, value in properties.items()}
        servers = {"bootstrap.servers": f"sqlite:///{tmp_path / 'queue.db'}"}
        return json.dumps({"Type": f"Kafka{kind}Config", "Properties": servers | spelled})

    return make


def drain(consumer: client.Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(100)
    return found


def test_what_is_sent_is_polled(config: Config) -> None:
    sent = [b"", b"bytes \x00\xff", b"x" * 300_000]
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe("queue")
        receipts = [producer.send("queue", value) for value in sent]
        assert all(receipt is not None and receipt.partition.topic == "queue" for receipt in receipts)
        assert sorted(drain(consumer, 3)) == sorted(sent)
        assert consumer.poll(0) == []


def test_text_is_utf8(config: Config) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe("queue")
        producer.send_string("queue", "grüße")
        assert consumer.poll_string(-1) == ["grüße"]
        producer.send("queue", b"\xff")
        assert consumer.poll_string(-1) == ["\ufffd"]


def test_a_negative_timeout_waits_until_something_comes(config: Config) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        for topic in ("one", "two"):
            consumer.subscribe(topic)
        producer.send("two", b"late")
        assert consumer.poll(-1) == [b"late"]


def test_asynchronous_sends_return_at_once_and_arrive(config: Config) -> None:
    with client.Producer(config("Producer", producer_type="async")) as producer:
        assert all(producer.send("queue", b"%d" % number) is None for number in range(1_000))
        assert producer.flush(30) == 0
    with client.Consumer(config("Consumer", max_poll_records=300)) as consumer:
        consumer.subscribe("queue")
        assert sorted(map(int, drain(consumer, 1_000))) == list(range(1_000))


def test_a_group_goes_on_where_it_was(config: Config) -> None:
    with client.Producer(config("Producer")) as producer:
        for number in range(6):
            producer.send("queue", b"%d" % number)
    grouped = config("Consumer", group_id="workers", max_poll_records=4)
    with client.Consumer(grouped) as first:
        first.subscribe("queue")
        found = first.poll(1_000)
    with client.Consumer(grouped) as second:
        second.subscribe("queue")
        assert sorted(found + drain(second, 6 - len(found))) == [b"%d" % number for number in range(6)]


def test_without_auto_commit_only_commit_moves_the_group(config: Config) -> None:
    with client.Producer(config("Producer")) as producer:
        producer.send("queue", b"1")
    careful = config("Consumer", group_id="careful", enable_auto_commit=False)
    for _ in range(2):
        with client.Consumer(careful) as consumer:
            consumer.subscribe("queue")
            assert drain(consumer, 1) == [b"1"]
    with client.Consumer(careful) as consumer:
        consumer.subscribe("queue")
        assert drain(consumer, 1) == [b"1"]
        consumer.commit()
    with client.Consumer(careful) as consumer:
        consumer.subscribe("queue")
        assert consumer.poll(200) == []


def test_a_position_can_be_moved_back_for_a_backfill(config: Config) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe("queue")
        producer.send("queue", b"old")
        assert drain(consumer, 1) == [b"old"]
        between = time.time()
        producer.send("queue", b"new")
        assert drain(consumer, 1) == [b"new"]
        consumer.rewind("queue")
        assert sorted(drain(consumer, 2)) == [b"new", b"old"]
        consumer.rewind("queue", between)
        assert drain(consumer, 1) == [b"new"]
        consumer.rewind("queue", dict.fromkeys(consumer.position("queue"), 0))
        assert b"new" in drain(consumer, 1)


def test_consumers_without_a_group_each_get_everything(config: Config) -> None:
    with client.Producer(config("Producer")) as producer:
        producer.send("queue", b"1")
    for _ in range(2):
        with client.Consumer(config("Consumer")) as consumer:
            consumer.subscribe("queue")
            assert drain(consumer, 1) == [b"1"]


def test_latest_begins_with_what_comes_next(config: Config) -> None:
    with (
        client.Producer(config("Producer")) as producer,
        client.Consumer(config("Consumer", auto_offset_reset="latest")) as consumer,
    ):
        producer.send("queue", b"before")
        consumer.subscribe("queue")
        assert consumer.poll(200) == []
        producer.send("queue", b"after")
        assert drain(consumer, 1) == [b"after"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the client's configuration is no JSON"),
        ("[]", 'needs "Type" and "Properties"'),
        ('{"Type": "KafkaConsumerConfig", "Properties": {}}', "KafkaProducerConfig is needed here"),
        ('{"Type": "KafkaProducerConfig", "Properties": {}}', '"bootstrap.servers" is needed'),
        ('{"Type": "KafkaProducerConfig", "Properties": {}, "Propertys": 1}', "unknown members: Propertys"),
    ],
)
def test_a_wrong_text_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        client.Producer(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ack", "all", r"unknown property 'ack': did you mean acks\?"),
        ("group.id", "g", "unknown property 'group.id'"),
        ("linger.ms", "x", "'x' is no number of milliseconds"),
        ("acks", [], "property acks: text, a number or a boolean is needed"),
        ("producer.type", 1, "property producer.type: '1' is none of sync, async"),
        ("retries", "many", "property retries: 'many' is no whole number"),
        ("ssl.truststore.type", "JKS", "property ssl.truststore.type: only PEM can be read, not JKS"),
        ("sasl.jaas.config", 'x username="me";', "property sasl.jaas.config: "),
    ],
)
def test_a_wrong_property_is_one_clear_error(name: str, value: Any, said: str) -> None:
    properties = {"bootstrap.servers": "sqlite://", name: value}
    with pytest.raises(ConfigurationError, match=said):
        client.Producer(json.dumps({"Type": "KafkaProducerConfig", "Properties": properties}))


def test_kafka_properties_become_options_of_the_driver() -> None:
    text = json.dumps(
        {
            "Type": "KafkaProducerConfig",
            "Properties": {
                "bootstrap.servers": "one:9092,two:9093",
                "acks": "all",
                "retries": 0,
                "batch.size": 16384,
                "linger.ms": 1,
                "ssl.truststore.location": "/ca.pem",
                "ssl.truststore.type": "PEM",
                "sasl.jaas.config": 'x.PlainLoginModule required username="me" password="a&b";',
                "socket.connection.setup.timeout.ms": 100,
            },
        }
    )
    assert client_config.url(
        client_config.read(text, "KafkaProducerConfig"), {"bootstrap.servers", "retries"}
    ) == (
        "kafka://one:9092,two:9093/?acks=all&batch_size=16384&linger=0.001&ssl_cafile=%2Fca.pem"
        "&sasl_username=me&sasl_password=a%26b"
        "&client_properties=socket.connection.setup.timeout.ms%3A100"
    )


def test_what_cannot_be_sent_is_raised(tmp_path: Path) -> None:
    log = tmp_path / "queue.db"
    servers = {"bootstrap.servers": f"sqlite:///{log}?busy_timeout=0.1", "retries": 0}
    for kind in ("sync", "async"):
        text = json.dumps({"Type": "KafkaProducerConfig", "Properties": servers | {"producer.type": kind}})
        with client.Producer(text) as producer:
            producer.send("queue", b"1")
            producer.flush()
            with locked(log), pytest.raises(DeliveryFailed, match="locked"):
                _ = producer.send("queue", b"2") or producer.flush()
            with pytest.raises(TypeError, match="send_string takes text"):
                producer.send("queue", "text")  # type: ignore[arg-type]
