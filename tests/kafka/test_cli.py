"""The commands that look after topics and groups, against a real broker with either client."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import kafka
import pytest

from notifier_kafka.cli import main
from notifier_kafka.cli.output.text import iso
from notifier_kafka.contract.driver import Partition, Record
from notifier_kafka.errors import ConfigurationError, TransportUnavailable
from notifier_kafka_drivers.kafka.admin import KafkaAdmin
from notifier_kafka_drivers.kafka.clients import protocol as seam
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(kafka_cluster: Any, client: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        code = main.main(("--transport-url", f"{kafka_cluster.url}?client={client}", *argv))
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return call


def rows(run: Run, *argv: str) -> Any:
    code, out, err = run(*argv, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_topic_is_made_shown_purged_and_deleted(run: Run, connect: Connect, topic: str) -> None:
    settings = ("retention.ms=86400000", "cleanup.policy=compact,delete", "replication.factor=1")
    shape = [part for setting in settings for part in ("--set", setting)]
    assert rows(run, "topics", "create", topic, "--partitions", "2", *shape) == [
        {"name": topic, "partitions": 2, "records": 0}
    ]
    code, _, err = run("topics", "create", topic)
    assert code == 5
    assert "exists already" in err

    publish(connect(), *(Record(topic, b"x", b"%d" % key) for key in range(20)))
    shown = rows(run, "topics", "show", topic)
    assert shown["records"] == 20
    assert [row["details"] for row in shown["partitions"]] == ["leader 1; replicas 1; in sync 1"] * 2
    assert shown["details"]["retention.ms"] == "86400000"
    assert shown["details"]["cleanup.policy"] == "compact,delete"
    assert not any(name.startswith("partition") for name in shown["details"])

    assert rows(run, "topics", "purge", topic, "--yes")[0]["records"] == 20
    purged = rows(run, "topics", "show", topic)["partitions"]
    assert [row["first"] for row in purged] == [row["next"] for row in shown["partitions"]]

    assert rows(run, "topics", "delete", topic, "--yes")[0]["name"] == topic
    until(lambda: run("topics", "show", topic)[0] == 2, "the topic to be gone")
    assert run("topics", "delete", topic, "--yes")[0] == 2


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--set", "retention.ms=soon"), "retention.ms"),
        (("--set", "no.such.setting=1"), "no.such.setting"),
        (("--set", "replication.factor=2"), "there are fewer brokers than replicas asked for"),
        (("--set", "replication.factor=two"), "replication.factor = 'two': it must be a number"),
    ],
)
def test_settings_that_kafka_refuses(run: Run, topic: str, argv: tuple[str, ...], said: str) -> None:
    code, out, err = run("topics", "create", topic, *argv)
    assert (code, out) == (5, "")
    assert said in err
    assert err.count("\n") == 1


class Unheard:
    """A client's administration whose orders are obeyed and whose answers come too late."""

    def __init__(self, admin: seam.Admin) -> None:
        self._admin = admin
        self.partitions = admin.partitions

    def create(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        self._admin.create(topic, partitions, replication, settings)
        raise TransportUnavailable(f"topic {topic}: the brokers took too long")


class Deaf(Unheard):
    """One whose orders do not even arrive."""

    def create(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        raise TransportUnavailable(f"topic {topic}: the brokers took too long")


@pytest.mark.long_with("kafka-python")
def test_a_topic_is_made_also_when_the_answer_was_late(connect: Connect, topic: str) -> None:
    driver = connect()

    def through(kind: type[Unheard]) -> KafkaAdmin:
        return KafkaAdmin(lambda: cast(seam.Admin, kind(driver._admin())), driver._settings)

    through(Unheard).create_topic(topic, 3)
    assert len(driver.admin().describe_topic(topic).spans) == 3
    with pytest.raises(ConfigurationError, match="exists with 3 partitions, not 2"):
        through(Deaf).create_topic(topic, 2)
    with pytest.raises(TransportUnavailable, match="took too long"):
        through(Deaf).create_topic(f"{topic}-not", 2)


def test_a_group_is_shown_and_reset(run: Run, connect: Connect, topic: str) -> None:
    driver, at = connect(), Partition(topic, 0)
    driver.admin().create_topic(topic, 1)
    publish(driver, *(Record(topic, b"%d" % number) for number in range(7)))
    time.sleep(0.01)  # times on a log are those of milliseconds
    publish(driver, *(Record(topic, b"%d" % number) for number in range(7, 10)))
    member = driver.subscribe([topic], topic, "earliest")
    deliveries = gather(member, 10)
    member.commit({at: 6})

    (listed,) = (row for row in rows(run, "groups", "list") if row["name"] == topic)
    assert listed == {"name": topic, "members": 1, "lag": 4}
    (row,) = rows(run, "groups", "lag", topic)
    (identity,) = driver.admin().describe_group(topic).members
    assert row == {"topic": topic, "partition": 0, "position": 6, "lag": 4, "member": identity}

    code, out, err = run("groups", "reset", topic, "--to", "earliest", "--execute")
    assert (code, out) == (3, "")
    assert "active members (1): stop them first" in err
    member.close()
    until(lambda: not driver.admin().describe_group(topic).members, "the member to be gone")
    assert rows(run, "groups", "lag", topic)[0]["member"] is None

    for to, new in (("earliest", 0), ("latest", 10), ("3", 3), (iso(deliveries[7].timestamp), 7)):
        code, out, err = run("groups", "reset", topic, "--to", to, "--json")
        assert (code, json.loads(out)[0]["new"]) == (0, new)
        assert "nothing was changed" in err
    assert driver.admin().describe_group(topic).positions == {at: 6}
    (moved,) = rows(run, "groups", "reset", topic, "--to", "3", "--topic", topic, "--execute")
    assert moved == {"topic": topic, "partition": 0, "old": 6, "new": 3, "lag": 7}
    again = driver.subscribe([topic], topic, "earliest")
    assert [delivery.offset for delivery in gather(again, 7)] == list(range(3, 10))


def test_what_kafka_keeps_for_itself_is_not_deleted(run: Run, connect: Connect, topic: str) -> None:
    driver = connect()
    committed(driver, topic)
    for verb in ("delete", "purge"):
        code, out, err = run("topics", verb, "__consumer_offsets", "--yes")
        assert (code, out) == (2, "")
        assert "is an internal topic of the log" in err
    assert driver.admin().describe_group(topic).positions == {Partition(topic, 0): 1}


def test_what_is_not_there(run: Run, connect: Connect, topic: str) -> None:
    committed(connect(), topic)
    for argv in (
        ("topics", "show", f"{topic}-not"),
        ("topics", "show", "no/such name"),
        ("topics", "purge", f"{topic}-not", "--yes"),
        ("groups", "lag", f"{topic}-not"),
        ("groups", "reset", f"{topic}-not", "--to", "0"),
        ("groups", "reset", topic, "--to", "0", "--topic", f"{topic}-not"),
    ):
        code, out, err = run(*argv)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
    assert f"{topic}-not" not in run("topics", "list", "-f", "value", "-c", "name")[1].split()


def committed(driver: KafkaDriver, name: str) -> None:
    """Make a topic and a group of that name whose position is 1."""
    driver.admin().create_topic(name, 1)
    publish(driver, Record(name, b"x"))
    member = driver.subscribe([name], name, "earliest")
    gather(member, 1)
    member.commit({Partition(name, 0): 1})
    member.close()


def test_an_absurd_time_hides_no_notification(
    run: Run, kafka_cluster: Any, topic: str, client: str, connect: Connect
) -> None:
    times = [-6_000_000_000_000_000, 1_700_000_000_000, 9_000_000_000_000_000]
    far = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    connect().admin().create_topic(f"{topic}.info", partitions=1, settings=far)
    made = kafka.KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap, acks="all")
    with contextlib.closing(made) as producer:
        for number, at in enumerate(times):
            value = b'{"priority": "INFO", "payload": %d}' % number
            producer.send(f"{topic}.info", value, timestamp_ms=at).get(60)
    seen = {0: "@-6000000000000.000", 1: "2023-11-14T22:13:20.000Z", 2: "@9000000000000.000"}
    for command in (("tail",), ("listen", "--pool", topic, "--from", "beginning")):
        code, out, err = run(*command, "--topic", topic, "--max", "3", "--timeout", "10", "--json")
        assert (code, err) == (0, "")
        found = map(json.loads, out.splitlines())
        assert {each["payload"]: each["recorded_at"] for each in found} == seen
