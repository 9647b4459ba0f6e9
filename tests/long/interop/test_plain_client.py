"""The plain bytes client: the same behaviours over SQLite and over Kafka with both client libraries."""

import json
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notifier_kafka.bytes_client import client, json_config
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import ConfigurationError, DeliveryFailed
from tests.long.interop.interop_kit import CLIENTS, until

Config = Callable[..., str]
PATIENCE = 60.0


@pytest.fixture(params=["sqlite", *CLIENTS])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give what ``bootstrap.servers`` says."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'queue.db'}"
    cluster = request.getfixturevalue("kafka_cluster")
    return f"{cluster.url}/?client={request.param}"


@pytest.fixture
def config(servers: str) -> Config:
    def make(kind: str, **properties: Any) -> str:
        spelled = {name.replace("_", "."): value for name, value in properties.items()}
        return json.dumps(
            {"Type": f"Kafka{kind}Config", "Properties": {"bootstrap.servers": servers} | spelled}
        )

    return make


@pytest.fixture
def queue() -> str:
    """The name of a topic that is not there."""
    return f"queue-{uuid.uuid4().hex[:8]}"


def drain(consumer: client.Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(100)
    return found


def test_what_is_sent_is_polled(config: Config, queue: str) -> None:
    sent = [b"", b"bytes \x00\xff", b"x" * 300_000]
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe(queue)
        receipts = [producer.send(queue, value) for value in sent]
        assert all(receipt is not None and receipt.partition.topic == queue for receipt in receipts)
        assert sorted(drain(consumer, 3)) == sorted(sent)
        assert consumer.poll(0) == []


def test_text_is_utf8(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe(queue)
        producer.send_string(queue, "grüße")
        assert consumer.poll_string(-1) == ["grüße"]
        producer.send(queue, b"\xff")
        assert consumer.poll_string(-1) == ["\ufffd"]


def test_a_negative_timeout_waits_until_something_comes(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        for topic in (f"{queue}-one", f"{queue}-two"):
            consumer.subscribe(topic)
        polls = threading.Event()
        watched: Any = consumer
        poll = watched._poll

        def noted(*arguments: Any) -> Any:
            polls.set()
            return poll(*arguments)

        watched._poll = noted

        def send() -> None:
            polls.wait(PATIENCE)
            time.sleep(1.5)  # longer than one of the waits that together have no end
            producer.send(f"{queue}-two", b"late")

        sending = threading.Thread(target=send)
        sending.start()
        assert consumer.poll(-1) == [b"late"]
        sending.join()


def test_asynchronous_sends_return_at_once_and_arrive(config: Config, queue: str) -> None:
    with client.Producer(config("Producer", producer_type="async")) as producer:
        assert all(producer.send(queue, b"%d" % number) is None for number in range(1_000))
        assert producer.flush(30) == 0
    with client.Consumer(config("Consumer", max_poll_records=300)) as consumer:
        consumer.subscribe(queue)
        assert sorted(map(int, drain(consumer, 1_000))) == list(range(1_000))


def test_a_group_goes_on_where_it_was(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer:
        for number in range(6):
            producer.send(queue, b"%d" % number)
    grouped = config("Consumer", group_id=f"{queue}-workers", max_poll_records=4)
    with client.Consumer(grouped) as first:
        first.subscribe(queue)
        found = drain(first, 1)
        assert len(found) <= 4
    with client.Consumer(grouped) as second:
        second.subscribe(queue)
        assert sorted(found + drain(second, 6 - len(found))) == [b"%d" % number for number in range(6)]


def test_without_auto_commit_only_commit_moves_the_group(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer:
        producer.send(queue, b"1")
    careful = config("Consumer", group_id=f"{queue}-careful", enable_auto_commit=False)
    for _ in range(2):
        with client.Consumer(careful) as consumer:
            consumer.subscribe(queue)
            assert drain(consumer, 1) == [b"1"]
    with client.Consumer(careful) as consumer:
        consumer.subscribe(queue)
        assert drain(consumer, 1) == [b"1"]
        consumer.commit()
    with client.Producer(config("Producer")) as producer:
        producer.send(queue, b"2")
    with client.Consumer(careful) as consumer:
        consumer.subscribe(queue)
        assert drain(consumer, 1) == [b"2"]


def test_a_position_can_be_moved_back_for_a_backfill(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe(queue)
        producer.send(queue, b"old")
        assert drain(consumer, 1) == [b"old"]
        between = time.time()
        time.sleep(0.01)  # a log's clock may have milliseconds
        producer.send(queue, b"new")
        assert drain(consumer, 1) == [b"new"]
        places = consumer.position(queue)
        consumer.rewind(queue)
        assert sorted(drain(consumer, 2)) == [b"new", b"old"]
        assert consumer.position(queue) == places
        consumer.rewind(queue, between)
        assert drain(consumer, 1) == [b"new"]
        consumer.rewind(queue, dict.fromkeys(places, 0))
        assert sorted(drain(consumer, 2)) == [b"new", b"old"]


def test_a_position_can_be_moved_before_the_first_poll(config: Config, queue: str) -> None:
    grouped = config("Consumer", group_id=f"{queue}-backfill")
    with client.Producer(config("Producer")) as producer:
        for number in range(3):
            producer.send(queue, b"%d" % number)
    with client.Consumer(grouped) as consumer:
        consumer.subscribe(queue)
        assert len(drain(consumer, 3)) == 3
    with client.Consumer(grouped) as consumer:
        consumer.subscribe(queue)
        consumer.rewind(queue)
        assert sorted(drain(consumer, 3)) == [b"0", b"1", b"2"]
    with client.Consumer(config("Consumer")) as consumer:
        consumer.subscribe(queue)
        consumer.rewind(queue, time.time())
        with client.Producer(config("Producer")) as producer:
            producer.send(queue, b"3")
        assert drain(consumer, 1) == [b"3"]


def test_consumers_without_a_group_each_get_everything(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer:
        producer.send(queue, b"1")
    for _ in range(2):
        with client.Consumer(config("Consumer")) as consumer:
            consumer.subscribe(queue)
            assert drain(consumer, 1) == [b"1"]


def test_latest_begins_with_what_comes_next(config: Config, queue: str) -> None:
    with (
        client.Producer(config("Producer")) as producer,
        client.Consumer(config("Consumer", auto_offset_reset="latest")) as consumer,
    ):
        producer.send(queue, b"before")
        consumer.subscribe(queue)
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE
        # When exactly it begins, nobody is told.
        while not found and time.monotonic() < deadline:
            producer.send(queue, b"after")
            found = consumer.poll(100)
        assert set(found) == {b"after"}


def test_topics_are_made_live_and_subscribed_to_live(config: Config, queue: str) -> None:
    with client.Producer(config("Producer")) as producer, client.Consumer(config("Consumer")) as consumer:
        for number in range(2):
            topic = f"{queue}-{number}"
            consumer.subscribe(topic)
            assert consumer.poll(500) == []
            producer.send(topic, topic.encode())
            assert drain(consumer, 1) == [topic.encode()]


def test_a_full_topic_does_not_keep_another_waiting(config: Config, queue: str) -> None:
    topics = [f"{queue}-{number}" for number in range(3)]
    with client.Producer(config("Producer", producer_type="async")) as producer:
        for topic in topics:
            for _ in range(100):
                producer.send(topic, topic.encode())
    with client.Consumer(config("Consumer", max_poll_records=1)) as consumer:
        for topic in topics:
            consumer.subscribe(topic)
        found: list[bytes] = []
        # All are there: from now on they take turns.
        while set(found) != {topic.encode() for topic in topics}:
            found += consumer.poll(100)
            assert len(found) < 300
        turns = [value for _ in range(30) for value in consumer.poll(1_000)]
        assert min(Counter(turns).values()) > 5


@pytest.mark.parametrize("commits", [True, False])
def test_a_group_takes_one_more_topic(config: Config, queue: str, commits: bool) -> None:
    topics = [f"{queue}-one", f"{queue}-two"]
    grouped = config("Consumer", group_id=f"{queue}-group", enable_auto_commit=commits)
    with client.Producer(config("Producer")) as producer, client.Consumer(grouped) as consumer:
        for topic in topics:
            producer.send(topic, b"before")
            consumer.subscribe(topic)
            # What was polled before the second subscription does not come again.
            assert drain(consumer, 1) == [b"before"]
        for topic in topics:
            producer.send(topic, topic.encode())
        assert sorted(drain(consumer, 2)) == sorted(topic.encode() for topic in topics)
        assert [sum(consumer.position(topic).values()) for topic in topics] == [2, 2]


@pytest.mark.parametrize("servers", CLIENTS, indirect=True)
def test_a_position_of_a_topic_that_is_made_again_is_not_kept(config: Config, queue: str) -> None:
    part, grouped = Partition(queue, 0), config("Consumer", group_id=f"{queue}-group")
    with client.Producer(config("Producer")) as producer, client.Consumer(grouped) as consumer:
        admin = consumer._driver.admin()
        admin.create_topic(queue, 1)
        for number in range(3):
            producer.send(queue, b"%d" % number)
        consumer.subscribe(queue)
        assert len(drain(consumer, 3)) == 3
        reading: Any = consumer._members[queue]

        def known() -> bool:
            assert consumer.poll(10) == []
            return bool(reading._topic_ids._ids)

        until(known, "the topic to be known by its id")
        assert admin.describe_group(f"{queue}-group").positions == {part: 3}
        admin.delete_topic(queue)
        admin.create_topic(queue, 1)
        for number in range(3, 6):
            producer.send(queue, b"%d" % number)
        found: list[bytes] = []

        def polled() -> bool:
            found.extend(consumer.poll(0))
            return len(found) == 3

        until(polled, "the new topic to be read")
        # What was not polled yet is not behind the group.
        assert found == [b"3", b"4", b"5"]
        assert admin.describe_group(f"{queue}-group").positions == {part: 0}
        consumer.commit()
        assert admin.describe_group(f"{queue}-group").positions == {part: 3}


def test_each_property_is_known_to_the_client_library(config: Config, queue: str) -> None:
    common = {
        "client.id": "me",
        "client.dns.lookup": "use_all_dns_ips",
        "client.rack": "here",
        "connections.max.idle.ms": 540000,
        "metadata.max.age.ms": 300000,
        "receive.buffer.bytes": 65536,
        "reconnect.backoff.max.ms": 1000,
        "reconnect.backoff.ms": 50,
        "request.timeout.ms": 30000,
        "retry.backoff.ms": 100,
        "security.protocol": "PLAINTEXT",
        "send.buffer.bytes": 131072,
        "ssl.endpoint.identification.algorithm": "https",
    }
    produce = {
        "acks": "-1",
        "batch.size": 16384,
        "buffer.memory": 33554432,
        "compression.type": "gzip",
        "delivery.timeout.ms": 120000,
        "enable.idempotence": True,
        "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
        "linger.ms": 1,
        "max.block.ms": 60000,
        "max.in.flight.requests.per.connection": 5,
        "max.request.size": 1048576,
        "producer.type": "sync",
        "retries": 3,
        "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    }
    consume = {
        "auto.commit.interval.ms": 5000,
        "auto.offset.reset": "earliest",
        "default.api.timeout.ms": 60000,
        "check.crcs": True,
        "enable.auto.commit": True,
        "fetch.max.bytes": 52428800,
        "fetch.max.wait.ms": 500,
        "fetch.min.bytes": 1,
        "group.id": f"{queue}-group",
        "group.instance.id": "one",
        "group.protocol": "classic",
        "heartbeat.interval.ms": 3000,
        "isolation.level": "read_committed",
        "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "max.partition.fetch.bytes": 1048576,
        "max.poll.interval.ms": 300000,
        "max.poll.records": 10,
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
        "session.timeout.ms": 45000,
        "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    }
    not_without_files_or_users = {"bootstrap.servers"} | {
        name for name in json_config.known(json_config.PRODUCER) if name.startswith(("sasl.", "ssl."))
    }
    for given, kind in ((produce, json_config.PRODUCER), (consume, json_config.CONSUMER)):
        assert json_config.known(kind) - not_without_files_or_users <= {*given, *common}
    with (
        client.Producer(config("Producer", **common, **produce)) as producer,
        client.Consumer(config("Consumer", **common, **consume)) as consumer,
    ):
        producer.send(queue, b"1")
        consumer.subscribe(queue)
        assert drain(consumer, 1) == [b"1"]


def test_the_configuration_of_the_specification(kafka_cluster: Any, queue: str) -> None:
    text = (
        '{"Type": "KafkaProducerConfig", "Properties": {"bootstrap.servers": "...", "acks": "all", '
        '"retries": 0, "batch.size": 16384, "linger.ms": 1}}'
    )
    with client.Producer(text.replace("...", kafka_cluster.bootstrap)) as producer:
        receipt = producer.send(queue, b"1")
    assert receipt is not None
    assert receipt.offset == 0


@pytest.fixture(params=CLIENTS)
def nobody(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give an address of Kafka's where no broker is."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        yield f"kafka://127.0.0.1:{taken.getsockname()[1]}/?client={request.param}"


@pytest.mark.parametrize(
    ("kind", "name", "value", "said"),
    [
        (client.Producer, "linger.mss", 1, r"unknown property 'linger.mss': did you mean linger.ms\?"),
        (client.Producer, "group.id", "g", "unknown property 'group.id': "),
        (client.Producer, "acks", "some", "acks"),
        (client.Consumer, "fetch.min.byte", 1, r"unknown property .*: did you mean fetch.min.bytes\?"),
        (client.Consumer, "acks", "all", "unknown property 'acks': "),
        (client.Consumer, "isolation.level", "some", "isolation_level"),
        (client.Consumer, "auto.offset.reset", "none", "'none' is not one of earliest, latest"),
    ],
)
def test_a_wrong_property_is_told_at_once(nobody: str, kind: Any, name: str, value: Any, said: str) -> None:
    properties = {"bootstrap.servers": nobody, name: value}
    with pytest.raises(ConfigurationError, match=said) as caught:
        kind(json.dumps({"Type": f"Kafka{kind.__name__}Config", "Properties": properties}))
    assert "\n" not in str(caught.value)


def test_where_no_broker_is_a_send_fails_in_its_time(nobody: str) -> None:
    properties = {"bootstrap.servers": nobody, "delivery.timeout.ms": 500}
    with (
        client.Producer(json.dumps({"Type": "KafkaProducerConfig", "Properties": properties})) as producer,
        pytest.raises(DeliveryFailed),
    ):
        producer.send("queue", b"1")


def test_where_no_broker_is_an_asynchronous_send_fails_in_its_time(nobody: str) -> None:
    properties = {"bootstrap.servers": nobody, "delivery.timeout.ms": 500, "producer.type": "async"}
    failed: list[Exception] = []
    with client.Producer(
        json.dumps({"Type": "KafkaProducerConfig", "Properties": properties}),
        lambda _, error: failed.append(error),
    ) as producer:
        producer.send("queue", b"1")
        until(lambda: failed, "the failure")
        assert producer.flush(0) == 0


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("servers", CLIENTS, indirect=True)
def test_what_kafka_does_not_take_is_raised(config: Config, kind: str, queue: str) -> None:
    with client.Producer(config("Producer", producer_type=kind, max_request_size=1000)) as producer:
        for topic, value in ((f"{queue}/bad", b"1"), (queue, b"x" * 1001)):
            with pytest.raises(DeliveryFailed):
                _ = producer.send(topic, value) or producer.flush()
