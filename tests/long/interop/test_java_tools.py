"""Apache Kafka's own console tools and its Java producer, and us, over a real broker."""

import json
import subprocess
import uuid
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import pytest

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.jvm import jars, java
from notifier_kafka.publishing.notifier import Notifier
from tests.long.interop.interop_kit import CLIENTS, compare_all, connected, contents, listening, opened
from tests.long.interop.interop_samples import PRIORITIES, samples

Run = Callable[..., bytes]
PARTITIONS = 13


@pytest.fixture(scope="session")
def tool() -> Run:
    """A function that runs a main class of the broker's jars."""
    paths = [*jars.fetch(jars.KAFKA), *jars.fetch(jars.KAFKA_TOOLS)]
    # What starts fastest: each run is over in a second.
    program = [str(java.find(java.KAFKA).path), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    program += ["-cp", ":".join(map(str, paths))]

    def run(name: str, *arguments: str, given: bytes = b"") -> bytes:
        command = [*program, f"org.apache.kafka.tools.{name}", *arguments]
        done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


def produce(tool: Run, cluster: Any, topic: str, lines: Sequence[str], *, headers: bool = False) -> None:
    """Let the console producer publish lines of key, TAB, value; headers come before both."""
    wanted = ["parse.key=true", *(["parse.headers=true", "headers.key.separator=="] if headers else [])]
    options = [text for each in wanted for text in ("--reader-property", each)]
    where = ["--bootstrap-server", cluster.bootstrap, "--topic", topic]
    tool("ConsoleProducer", *where, *options, given="".join(f"{line}\n" for line in lines).encode())


def make_topic(cluster: Any, name: str, partitions: int) -> None:
    with connected(cluster.url) as transport:
        transport.driver.admin().create_topic(name, partitions)


@pytest.fixture(scope="module")
def made_by_hand(kafka_cluster: Any, tool: Run) -> str:
    """A topic with flat notifications, and something else, from the console producer."""
    topic = f"console-{uuid.uuid4().hex[:8]}"
    least = json.dumps({"priority": "info", "payload": {"n": 1}})
    full = json.dumps(
        {
            "message_id": "7",
            "publisher_id": "höst",
            "event_type": "made.by.hand",
            "priority": "Info",
            "payload": ["grüße", 2.5, None],
            "timestamp": "2026-11-18 07:50:58",
            "_context": {"user": "me"},
        },
        ensure_ascii=False,
    )
    make_topic(kafka_cluster, f"{topic}.info", 1)
    produce(tool, kafka_cluster, f"{topic}.info", [f"k1\t{least}", "k2\tno notification", f"k3\t{full}"])
    return topic


@pytest.mark.parametrize("client", CLIENTS)
def test_the_console_producer_reaches_our_listener(
    kafka_cluster: Any, made_by_hand: str, client: str
) -> None:
    with (
        connected(f"{kafka_cluster.url}/?client={client}") as transport,
        listening(transport, made_by_hand, pool=f"pool-{uuid.uuid4()}") as endpoint,
    ):
        first, second = endpoint.await_count(2)
    assert first == ("info", {}, None, None, {"n": 1}, {"message_id": None, "timestamp": None})
    assert second == (
        "info",
        {"user": "me"},
        "höst",
        "made.by.hand",
        ["grüße", 2.5, None],
        {"message_id": "7", "timestamp": "2026-11-18 07:50:58"},
    )


def test_our_notifications_reach_the_console_consumer(kafka_cluster: Any, tool: Run) -> None:
    topic = f"console-{uuid.uuid4().hex[:8]}"
    make_topic(kafka_cluster, f"{topic}.info", 1)
    for client in CLIENTS:
        with connected(f"{kafka_cluster.url}/?client={client}") as transport:
            notifier = Notifier(transport, "höst1", "messagingv2", topics=[topic], key="payload:instance")
            notifier.info({}, "compute.started", {"instance": "ïnst-7", "client": client})
            assert transport.flush(30) == 0
            records = [delivery.record for delivery in contents(transport, f"{topic}.info")]
    wanted = ("print.key=true", "print.headers=true", "headers.separator=;", "key.separator=\t")
    printed = tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", kafka_cluster.bootstrap, "--topic", f"{topic}.info"),
        *("--from-beginning", "--max-messages", str(len(CLIENTS)), "--timeout-ms", "60000"),
        *(text for each in wanted for text in ("--formatter-property", each)),
    )
    for client, record, line in zip(CLIENTS, records, printed.decode().splitlines(), strict=True):
        headers, key, value = line.split("\t")
        assert value.encode() == record.value
        found = opened(record.value)
        assert found["payload"] == {"instance": "ïnst-7", "client": client}
        assert key == "ïnst-7"
        assert dict(each.split(":", 1) for each in headers.split(";")) == {
            "content-type": "application/json",
            "priority": "INFO",
            "message-id": found["message_id"],
            "event-type": "compute.started",
            "publisher-id": "höst1",
        }


def keys() -> list[str]:
    """Make keys of every length modulo four, as murmur2 reads four bytes at a time."""
    made = ["", " ", "0", "a" * 10_000, "\u00fc" * 5_000, "\U0001f389", "\x7f", "\u0000"]
    made += ["x" * length for length in range(1, 40)]
    made += [f"compute.host{number}" for number in range(60)]
    made += [f"höst-{'日本' * (number % 7)}-{number}" for number in range(60)]
    made += [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(40)]
    return made


def test_a_key_has_the_same_partition_whoever_publishes(kafka_cluster: Any, tool: Run) -> None:
    unique = uuid.uuid4().hex[:8]
    topics = [f"murmur2-{unique}-{each}" for each in ("java", *CLIENTS)]
    found: list[dict[bytes | None, int]] = []
    for topic in topics:
        make_topic(kafka_cluster, topic, PARTITIONS)
    produce(tool, kafka_cluster, topics[0], [f"{key}\tvalue" for key in keys()])
    for topic, client in zip(topics[1:], CLIENTS, strict=True):
        with connected(f"{kafka_cluster.url}/?client={client}") as transport:
            publisher = transport.driver.publisher(lambda *failure: pytest.fail(str(failure)), Limits())
            for key in keys():
                publisher.offer(Record(topic, b"value", key.encode()))
            assert publisher.flush(60) == 0
    with connected(kafka_cluster.url) as transport:
        for topic in topics:
            deliveries = contents(transport, topic)
            assert len(deliveries) == len(keys())
            found.append({each.record.key: each.partition.number for each in deliveries})
    by_java, *by_ours = found
    assert by_java.keys() == {key.encode() for key in keys()}
    assert len(by_java) > 200
    assert set(by_java.values()) == set(range(PARTITIONS))
    for placed in by_ours:
        assert placed == by_java


EVENT = ("specversion=1.0", "id=7", "source=/else%20where", "type=made", "time=2026-11-18T08:50:58+01:00")


@pytest.fixture(scope="module")
def foreign_events(kafka_cluster: Any, tool: Run) -> str:
    """A topic with CloudEvents in both modes, from the console producer."""
    topic = f"events-{uuid.uuid4().hex[:8]}"
    attributes = dict(each.split("=", 1) for each in EVENT)
    structured = json.dumps(attributes | {"priority": "error", "data": {"n": 2}})
    binary = ",".join(f"ce_{each}" for each in (*EVENT, "partitionkey=k"))
    lines = [
        f'{binary},content-type=application/json\tk\t{{"n": 1}}',
        f"content-type=application/cloudevents+json; charset=UTF-8\tk\t{structured}",
    ]
    make_topic(kafka_cluster, f"{topic}.info", 1)
    produce(tool, kafka_cluster, f"{topic}.info", lines, headers=True)
    return topic


@pytest.mark.parametrize("client", CLIENTS)
def test_cloudevents_of_strangers_reach_our_listener(
    kafka_cluster: Any, foreign_events: str, client: str
) -> None:
    with (
        connected(f"{kafka_cluster.url}/?client={client}") as transport,
        listening(transport, foreign_events, pool=f"pool-{uuid.uuid4()}") as endpoint,
    ):
        got = endpoint.await_count(2)
    metadata = {"message_id": "7", "timestamp": "2026-11-18 07:50:58"}
    assert got == [
        ("info", {}, "/else where", "made", {"n": 1}, metadata),
        ("error", {}, "/else where", "made", {"n": 2}, metadata),
    ]


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("client", CLIENTS)
def test_our_cloudevents_reach_our_listener_and_anybody(kafka_cluster: Any, client: str, mode: str) -> None:
    topic, sent = f"events-{uuid.uuid4().hex[:8]}", samples()
    with connected(f"{kafka_cluster.url}/?client={client}", cloudevents_mode=mode) as transport:
        notifier = Notifier(transport, "a höst", "cloudevents", topics=[topic], key="event_type")
        for each in sent:
            getattr(notifier, each.priority)(each.context, each.event_type, each.payload)
        assert transport.flush(60) == 0
        with listening(transport, topic) as endpoint:
            got = endpoint.await_count(len(sent))
        names = [f"{topic}.{priority}" for priority in PRIORITIES if priority != "warning"]
        records = [delivery.record for delivery in contents(transport, *names)]
    bus = [_event(record, mode) for record in records]
    compare_all(got, sent, bus, "a höst", 1)


def _event(record: Record, mode: str) -> dict[str, Any]:
    """Read a CloudEvent as the specification has it; return what a notification calls its parts."""
    assert record.value is not None
    headers = {name: value.decode() for name, value in record.headers}
    if mode == "binary":
        assert headers["content-type"] == "application/json"
        event = {name[3:]: value for name, value in headers.items() if name.startswith("ce_")}
        event["data"] = json.loads(record.value)
    else:
        assert headers["content-type"].startswith("application/cloudevents+json")
        event = json.loads(record.value)
    assert event["specversion"] == "1.0"
    assert event["partitionkey"].encode() == record.key
    assert event["time"].endswith("Z")
    return {
        "message_id": event["id"],
        "publisher_id": unquote(event["source"]),
        "event_type": event["type"],
        "priority": event["priority"],
        "payload": event["data"],
        "timestamp": event["time"][:-1].replace("T", " "),
        "_context": json.loads(event.get("context", "{}")),
    }
