"""Brokers that are down, hung or killed: what users see, and that nothing acknowledged is lost."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from kafka_rig import Connect, gather, until

from notifier_kafka.driver import Limits, Receipt, Record
from notifier_kafka.errors import MessagingException, OutboxFull, TransportUnavailable

QUICK = {
    # Seconds instead of tens of them until another broker takes over.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
}


def test_publisher_and_listener_start_before_their_broker(
    make_kafka_cluster: Callable[..., Any], connect_to: Connect, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = make_kafka_cluster()
    cluster.stop()
    driver = connect_to(cluster.url)
    settled: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits())
    for n in range(20):
        publisher.offer(Record(topic, b"%d" % n, b"k"), settled.append)
    member = driver.subscribe([topic], topic, "earliest")
    with pytest.raises(TransportUnavailable, match=r"127\.0\.0\.1:\d+.*[Cc]onnection refused"):
        member.poll(10, 20.0)
    cluster.start()
    found = gather(member, 20)
    assert [delivery.record.value for delivery in found] == [b"%d" % n for n in range(20)]
    assert publisher.flush(30) == 0
    assert all(isinstance(outcome, Receipt) for outcome in settled)
    assert len(settled) == 20
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) <= 6, said


def test_a_hung_broker_stops_no_publisher_and_what_was_accepted_arrives(
    make_kafka_cluster: Callable[..., Any], connect_to: Connect, topic: str
) -> None:
    cluster = make_kafka_cluster()
    driver = connect_to(cluster.url)
    driver.admin().create_topic(topic, 1)
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits(records=5000))
    publisher.offer(Record(topic, b"first", b"k"))
    assert publisher.flush(30) == 0
    cluster.kill_node(1, signal.SIGSTOP)
    accepted = 0
    try:
        for n in range(8000):
            try:
                publisher.offer(Record(topic, b"%d" % n, b"k"))
            except OutboxFull:
                continue
            accepted += 1
    finally:
        cluster.kill_node(1, signal.SIGCONT)
    assert 5000 <= accepted < 8000
    assert publisher.flush(60) == 0
    assert failures == []
    (span,) = driver.spans([topic])
    assert span.stop - span.start == accepted + 1


def test_a_leader_that_is_killed_loses_nothing_acknowledged(
    make_kafka_cluster: Callable[..., Any], connect_to: Connect, topic: str
) -> None:
    cluster = make_kafka_cluster(3, properties=QUICK)
    driver = connect_to(cluster.url, topic_replication=3)
    driver.admin().create_topic(topic, 3)
    acknowledged: set[bytes] = set()
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    done = threading.Event()

    def settle(value: bytes) -> Callable[[Receipt | MessagingException], None]:
        return lambda outcome: acknowledged.add(value) if isinstance(outcome, Receipt) else None

    def produce() -> None:
        number = 0
        while not done.is_set():
            value = b"%d" % number
            try:
                publisher.offer(Record(topic, value, b"key-%d" % (number % 9)), settle(value))
            except OutboxFull:
                pass
            else:
                number += 1
            time.sleep(0.0005)

    member = driver.subscribe([topic], topic, "earliest")
    seen: set[bytes | None] = {delivery.record.value for delivery in _polled(member, 1.0)}
    producing = threading.Thread(target=produce)
    producing.start()
    until(lambda: len(acknowledged) > 500, "a start")
    leader = int(driver.admin().describe_topic(topic).details["partition 0"].split()[1].rstrip(";"))
    cluster.kill_node(leader)
    before = len(acknowledged)
    until(lambda: len(acknowledged) > before + 3000, "publishing to go on", 120.0)
    done.set()
    producing.join()
    assert publisher.flush(90) == 0
    assert failures == []

    def all_seen() -> bool:
        seen.update(delivery.record.value for delivery in _polled(member, 0.5))
        return acknowledged <= seen

    until(all_seen, f"{len(acknowledged)} acknowledged records", 120.0)


def _polled(member: Any, seconds: float) -> list[Any]:
    try:
        return list(member.poll(1000, seconds))
    except TransportUnavailable:
        return []
