"""Brokers that are down, hung or killed: what users see, and that nothing acknowledged is lost."""

import contextlib
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from notifier_kafka.contract.driver import Delivery, Limits, OnSettled, Receipt, Record, Subscription
from notifier_kafka.errors import CommitRefused, MessagingException, OutboxFull, TransportUnavailable
from notifier_kafka.listening import tracked_subscription
from notifier_kafka.testing.clusters import ClusterMaker
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.forgetting_proxy import LockingProxy
from tests.shared.kafka.kafka_rig import Connect, gather, until

OFFERED = 200_000  # what a leader is killed under
KEYS = 30


SHORT = """
import sys
from oslo_config import cfg
from notifier_kafka.config import options
from notifier_kafka.publishing import notifier, transport
conf = cfg.ConfigOpts()
conf([], project="test", default_config_files=[], default_config_dirs=[])
options.register(conf)
conf.set_override("exit_timeout", 60.0, group="notifications")
bus = transport.get_notification_transport(conf, f"{sys.argv[1]}/?client={sys.argv[2]}")
notifier.Notifier(bus, "host1", driver="messagingv2", topics=[sys.argv[3]]).info({}, "e", 1)
"""


def test_what_a_short_program_sends_arrives_when_the_broker_comes_while_it_ends(
    fragile: Cluster, connect_to: Connect, topic: str, client: str
) -> None:
    """Python gives nobody a pool of threads any more then."""
    fragile.stop()
    command = [sys.executable, "-c", SHORT, fragile.url, client, topic]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        said: list[str] = []
        for line in program.stderr:
            said.append(line)
            # The first try was in vain, or was the end of its thread.
            if line.startswith(("Publishing to topic", "Exception in thread")):
                break
        fragile.start()
        said += program.stderr
    assert [line for line in said if not line.startswith("Publishing ")] == []
    assert program.returncode == 0
    (span,) = connect_to(fragile.url).spans([f"{topic}.info"])
    assert span.stop - span.start == 1


def test_publisher_and_listener_start_before_their_broker(
    fragile: Cluster, connect_to: Connect, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fragile.stop()
    driver = connect_to(fragile.url)
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits())
    for n in range(20):
        publisher.offer(Record(topic, b"%d" % n, b"k"), settled.append)
    member = driver.subscribe([topic], topic, "earliest")
    with pytest.raises(TransportUnavailable, match=r"127\.0\.0\.1:\d+.*[Cc]onnection refused"):
        member.poll(10, 20.0)
    fragile.start()
    found = gather(member, 20)
    assert [delivery.record.value for delivery in found] == [b"%d" % n for n in range(20)]
    assert publisher.flush(30) == 0
    assert all(isinstance(outcome, Receipt) for outcome in settled)
    assert len(settled) == 20
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) <= 6, said


def test_a_hung_broker_stops_no_publisher_and_what_was_accepted_arrives(
    fragile: Cluster, connect_to: Connect, topic: str
) -> None:
    driver = connect_to(fragile.url)
    driver.admin().create_topic(topic, 1)
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits(records=5000))
    publisher.offer(Record(topic, b"first", b"k"))
    assert publisher.flush(30) == 0
    fragile.kill_node(1, signal.SIGSTOP)
    accepted = 0
    try:
        for n in range(8000):
            try:
                publisher.offer(Record(topic, b"%d" % n, b"k"))
            except OutboxFull:
                continue
            accepted += 1
    finally:
        fragile.kill_node(1, signal.SIGCONT)
    assert 5000 <= accepted < 8000
    assert publisher.flush(60) == 0
    assert failures == []
    (span,) = driver.spans([topic])
    assert span.stop - span.start == accepted + 1


def test_what_is_taken_back_while_the_broker_is_away_comes_again(
    fragile: Cluster, connect_to: Connect, topic: str
) -> None:
    driver = connect_to(fragile.url)
    driver.admin().create_topic(topic, 1)
    publisher = driver.publisher(lambda *_: None, Limits())
    for n in range(20):
        publisher.offer(Record(topic, b"%d" % n, b"k"))
    assert publisher.flush(30) == 0
    side = tracked_subscription.TrackedSubscription(driver.subscribe([topic], topic, "earliest"))
    polled: list[Delivery] = []
    while not polled:
        polled = side.poll(10, 1.0)
    fragile.stop()
    side.redeliver(polled)
    with pytest.raises(TransportUnavailable):
        side.poll(10, 1.0)
    fragile.start()
    again: list[Delivery] = []

    def come_again() -> bool:
        with contextlib.suppress(TransportUnavailable):
            again.extend(side.poll(10, 1.0))
        return len(again) >= 20

    until(come_again, "all of them", 60.0)
    assert [delivery.offset for delivery in again] == list(range(20))
    side.close()


@pytest.mark.parametrize("client", ["kafka-python"])  # it sends alone what was refused in a batch
@pytest.mark.parametrize("retry", [-1, 0])
def test_what_of_a_batch_has_its_receipt_keeps_it_when_the_broker_goes(
    make_kafka_cluster: ClusterMaker,
    connect_to: Connect,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    retry: int,
) -> None:
    with contextlib.closing(LockingProxy()) as proxy:
        told = {"advertised.listeners": f"CLIENT://127.0.0.1:{proxy.port}"}
        proxy.target = port = make_kafka_cluster(properties=told).saved_state.ports[0].client
        driver = connect_to(f"kafka://127.0.0.1:{proxy.port}", batch_size=16384)
        driver.admin().create_topic(topic, 1, {"max.message.bytes": "20000"})
        failures: list[Record] = []
        publisher = driver.publisher(lambda record, _: failures.append(record), Limits(retry=retry))
        # The first connects while the others come: they are a batch.
        records = [Record(topic, value) for value in (b"0", b"1", os.urandom(30_000), b"3")]
        for record in records:
            publisher.offer(record)
        missed = "Publishing waits"
        until(lambda: missed in caplog.text or not publisher.flush(0.0), "the broker to be missed")
        proxy.target = port
        assert publisher.flush(60) == 0
        (span,) = driver.spans([topic])
        there = [each.record.value for each in driver.read(span)]
        driver.close()
    # The last may share the fate of the one before it, or come too late for its batch: it has no other try.
    assert failures == records[2:3] or (retry == 0 and failures == records[2:])
    assert there == [record.value for record in records if record not in failures]


class Publishing:
    """Offers numbered records from a thread of its own and keeps what became of each."""

    def __init__(self, driver: KafkaDriver, topic: str, count: int) -> None:
        self.acknowledged: dict[int, Receipt] = {}
        self.failed: dict[int, MessagingException] = {}
        self._topic = topic
        self._count = count
        self._publisher = driver.publisher(lambda *_: None, Limits())
        self._thread = threading.Thread(target=self._offer_all)
        self._thread.start()

    def finish(self) -> None:
        self._thread.join()
        assert self._publisher.flush(180.0) == 0

    def _offer_all(self) -> None:
        for number in range(self._count):
            record = Record(self._topic, b"%d" % number, b"key-%d" % (number % KEYS))
            settle = functools.partial(self._settle, number)
            until(functools.partial(self._accepted, record, settle), "room", 180.0)

    def _accepted(self, record: Record, settle: OnSettled) -> bool:
        try:
            self._publisher.offer(record, settle)
        except OutboxFull:
            return False
        return True

    def _settle(self, number: int, outcome: Receipt | MessagingException) -> None:
        if isinstance(outcome, Receipt):
            self.acknowledged[number] = outcome
        else:
            self.failed[number] = outcome


def test_a_leader_that_is_killed_loses_nothing_acknowledged(
    trio: Cluster, connect_to: Connect, topic: str
) -> None:
    driver = connect_to(trio.url, topic_replication=3, session_timeout=6.0)
    driver.admin().create_topic(topic, 3)
    members = [driver.subscribe([topic], topic, "earliest") for _ in range(2)]
    seen: dict[Receipt, Record] = {}
    publishing = Publishing(driver, topic, OFFERED)
    until(lambda: len(publishing.acknowledged) > OFFERED // 10, "a start", 120.0)
    killed = leader(driver, topic)
    trio.kill_node(killed)
    assert len(publishing.acknowledged) < OFFERED  # so it was under load

    def all_seen() -> bool:
        for member in members:
            listen(member, seen)
        return len(seen) >= OFFERED

    try:
        until(all_seen, f"{OFFERED} records", 300.0)
    except AssertionError as error:
        counts = len(seen), len(publishing.acknowledged), len(publishing.failed)
        raise AssertionError(f"{error}; seen, acknowledged, failed: {counts}") from None
    publishing.finish()
    assert publishing.failed == {}
    assert len(publishing.acknowledged) == OFFERED
    until(lambda: out_of_sync(driver, topic) == [str(killed)], "the dead one to be out of sync")
    # Each where its receipt says, no record twice, and those of a key in the order offered.
    values = {place: int(record.value or b"") for place, record in seen.items()}
    assert values == {place: number for number, place in publishing.acknowledged.items()}
    last: dict[bytes | None, int] = {}
    for place in sorted(seen):
        key = seen[place].key
        assert last.get(key, -1) < values[place]
        last[key] = values[place]
    assert len(last) == KEYS


def out_of_sync(driver: KafkaDriver, topic: str) -> list[str]:
    with contextlib.suppress(TransportUnavailable):
        _, replicas, in_sync = driver.admin().describe_topic(topic).details["partition 0"].split("; ")
        return sorted(set(replicas.split()[1:]) - set(in_sync.split()))
    return []


def leader(driver: KafkaDriver, topic: str) -> int:
    return int(driver.admin().describe_topic(topic).details["partition 0"].split()[1].rstrip(";"))


def listen(member: Subscription, seen: dict[Receipt, Record]) -> None:
    """Poll once; commit, unless it went to another member."""
    try:
        found = member.poll(2000, 0.2)
        seen.update({Receipt(d.partition, d.offset): d.record for d in found})
        if found:
            member.commit({d.partition: d.offset + 1 for d in found})
    except (CommitRefused, TransportUnavailable):
        return
