"""The configuration of the plain bytes client; what it does is in tests/interop."""

import json
from pathlib import Path
from typing import Any

import pytest
from log_lock import locked

from notifier_kafka import client, client_config
from notifier_kafka.errors import ConfigurationError, DeliveryFailed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the client's configuration is no JSON"),
        (r'{"\ud800": 1}', "the client's configuration is no Unicode text"),
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
        ("linger.ms", "x", "'x' is no number of milliseconds"),
        ("linger.ms", 'x password="hunter2";', r"password=.?\*\*\*.* is no number of milliseconds"),
        ("acks", [], "property acks: text, a number or a boolean is needed"),
        ("producer.type", 1, "property producer.type: '1' is none of sync, async"),
        ("retries", "many", "property retries: 'many' is no whole number"),
        ("retries", -1, "property retries: '-1' is no whole number from 0 on"),
        ("ssl.truststore.type", "JKS", "property ssl.truststore.type: only PEM can be read, not JKS"),
        ("sasl.jaas.config", 'x username="me";', "property sasl.jaas.config: "),
    ],
)
def test_a_wrong_property_is_one_clear_error(name: str, value: Any, said: str) -> None:
    properties = {"bootstrap.servers": "sqlite://", name: value}
    with pytest.raises(ConfigurationError, match=said):
        client.Producer(json.dumps({"Type": "KafkaProducerConfig", "Properties": properties}))


def test_kafka_properties_become_options_of_the_driver() -> None:
    kind = client_config.PRODUCER
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
    assert client_config.url(client_config.read(text, kind), kind) == (
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
    ],
)
def test_properties_and_a_url_with_options_are_merged(
    servers: str, properties: dict[str, str], url: str
) -> None:
    kind = client_config.PRODUCER
    assert client_config.url({"bootstrap.servers": servers, **properties}, kind) == url


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
