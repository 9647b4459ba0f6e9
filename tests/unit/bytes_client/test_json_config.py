"""The configuration of the plain bytes client. Its behaviour is tested in tests/long/interop."""

import json
from pathlib import Path
from typing import Any

import pytest

from notifier_kafka.bytes_client import client, json_config
from notifier_kafka.errors import ConfigurationError, DeliveryFailed
from tests.shared.log_lock import locked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the client's configuration is not JSON"),
        (r'{"\ud800": 1}', "the client's configuration is not Unicode text"),
        ("[" * 100_000, "the client's configuration is nested too deeply"),
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
        ("linger.ms", "x", "'x' is not a number of milliseconds"),
        ("linger.ms", 'x password="hunter2";', r"password=.?\*\*\*.* is not a number of milliseconds"),
        ("acks", [], "property acks: text, a number or a boolean is needed"),
        ("producer.type", 1, "property producer.type: '1' is not one of sync, async"),
        ("retries", "many", "property retries: 'many' is not a whole number"),
        ("retries", "9" * 5000, "property retries: a number of 5000 digits is too large"),
        ("retries", -1, "property retries: '-1' is not a whole number of 0 or more"),
        ("ssl.truststore.type", "JKS", "property ssl.truststore.type: only PEM can be read, not JKS"),
        ("sasl.jaas.config", 'x username="me";', "property sasl.jaas.config: "),
        ("buffer.memory", 0, "property buffer.memory: '0' is not a whole number of 1 or more"),
        ("key.serializer", "com.example.AvroSerializer", "property key.serializer: only bytes and strings"),
        ("value.serializer", "x.StringSerializer", "property value.serializer: only bytes and strings"),
        ("value.deserializer", "StringDeserializer", "unknown property 'value.deserializer'"),
        ("max.block.ms", "long", "property max.block.ms: 'long' is not a number of milliseconds"),
        ("client.rack", "a,b", "property client.rack: a comma in its value cannot be passed on"),
        (
            "transactional.id",
            "t",
            "property transactional.id is not supported: only notifiers have transactions",
        ),
        ("partitioner.class", "x.Mine", "property partitioner.class is not supported: .*without a key"),
        (
            "ssl.keystore.password",
            "hunter2",
            "property ssl.keystore.password is not supported: .*ssl.key.pass",
        ),
        ("ssl.keystore.key", "-----BEGIN", "property ssl.keystore.key is not supported: write .*to a file"),
    ],
)
def test_a_wrong_property_is_one_clear_error(name: str, value: Any, said: str) -> None:
    properties = {"bootstrap.servers": "sqlite://", name: value}
    with pytest.raises(ConfigurationError, match=said) as caught:
        client.Producer(json.dumps({"Type": "KafkaProducerConfig", "Properties": properties}))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("partition.assignment.strategy", "x.StickyAssignor", "by RangeAssignor, not by x.StickyAssignor"),
        ("default.api.timeout.ms", "long", "property default.api.timeout.ms: 'long' is not a number"),
        ("max.block.ms", 1, "unknown property 'max.block.ms'"),
    ],
)
def test_a_wrong_property_of_a_consumer_is_one_clear_error(name: str, value: Any, said: str) -> None:
    properties = {"bootstrap.servers": "sqlite://", name: value}
    with pytest.raises(ConfigurationError, match=said):
        client.Consumer(json.dumps({"Type": "KafkaConsumerConfig", "Properties": properties}))


def test_kafka_properties_become_options_of_the_driver() -> None:
    kind = json_config.PRODUCER
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
                "request.timeout.ms": 100,
                "retry.backoff.ms": 10,
            },
        }
    )
    assert json_config.url(json_config.read(text, kind), kind) == (
        "kafka://one:9092,two:9093/?acks=all&batch_size=16384&linger=0.001&ssl_cafile=%2Fca.pem"
        "&client_properties=request.timeout.ms%3A100%2Cretry.backoff.ms%3A10"
        "&sasl_username=me&sasl_password=a%26b"
    )


@pytest.mark.parametrize(
    ("servers", "properties", "url"),
    [
        ("kafka://h:1/?client=kafka-python", {}, "kafka://h:1/?client=kafka-python"),
        ("kafka://h:1?client=x&acks=1", {"acks": "all"}, "kafka://h:1?client=x&acks=all"),
        (
            "kafka://h:1/?client_properties=check.crcs:true&client=x",
            {"client.rack": "a", "client.id": "me"},
            "kafka://h:1/?client_properties=check.crcs%3Atrue%2Cclient.rack%3Aa&client=x&client_id=me",
        ),
        ("one:1, two:2", {}, "kafka://one:1,two:2/"),
        ("[::1]:9092", {"acks": "-1"}, "kafka://[::1]:9092/?acks=all"),
        ("h:1", {"ssl.endpoint.identification.algorithm": ""}, "kafka://h:1/?ssl_check_hostname=false"),
        ("sqlite:///log.db?busy_timeout=1", {"acks": "1"}, "sqlite:///log.db?busy_timeout=1"),
        ("sqlite:///my log.db", {}, "sqlite:///my log.db"),
        ("sqlite:", {}, "sqlite:///"),
        ("sqlite:2026.db?busy_timeout=1", {}, "sqlite:///2026.db?busy_timeout=1"),
        ("sqlite:/var/lib/log.db", {}, "sqlite:////var/lib/log.db"),
        ("sqlite:9092,b:1", {}, "kafka://sqlite:9092,b:1/"),  # a host of that name
    ],
)
def test_properties_and_a_url_with_options_are_merged(
    servers: str, properties: dict[str, str], url: str
) -> None:
    kind = json_config.PRODUCER
    assert json_config.url({"bootstrap.servers": servers, **properties}, kind) == url


@pytest.mark.parametrize("spelled", ["sqlite:queue.db", "sqlite:{0}/queue.db", "sqlite:///queue.db"])
def test_a_queue_in_a_file_is_spelled_with_and_without_slashes(
    spelled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    servers = {"bootstrap.servers": spelled.format(tmp_path)}
    serialization = "org.apache.kafka.common.serialization"
    for_java = {
        "buffer.memory": 33554432,
        "key.serializer": "StringSerializer",
        "value.serializer": f"{serialization}.ByteArraySerializer",
    }
    with client.Producer(json.dumps({"Type": "KafkaProducerConfig", "Properties": servers | for_java})) as to:
        to.send("queue", b"1")
    assert (tmp_path / "queue.db").is_file()
    for_java = {
        "auto.commit.interval.ms": 5000,
        "key.deserializer": f"{serialization}.ByteArrayDeserializer",
        "value.deserializer": f"{serialization}.StringDeserializer",
    }
    text = json.dumps({"Type": "KafkaConsumerConfig", "Properties": servers | for_java})
    with client.Consumer(text) as consumer:
        consumer.subscribe("queue")
        assert consumer.poll(-1) == [b"1"]


def test_memory_of_the_buffer_is_what_waits_at_most() -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1", "buffer.memory": 1000, "producer.type": "async"}
    text = json.dumps({"Type": "KafkaProducerConfig", "Properties": properties})
    with client.Producer(text) as producer, pytest.raises(DeliveryFailed, match="exceeds the outbox of 1000"):
        producer.send("queue", b"x" * 1001)


def test_what_a_locked_log_does_not_take_is_raised(tmp_path: Path) -> None:
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
