"""What brokers do for a moment when they come back, or hear of a topic, costs nobody anything."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from notifier_kafka.contract.driver import Limits, OnSettled, Publisher, Receipt, Record
from notifier_kafka.errors import CommitRefused, MessagingException, TransportUnavailable
from notifier_kafka.testing.clusters import ClusterMaker
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.forgetting_proxy import ForgettingProxy, RefusingProxy
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, gather, publish, until

COUNT = 300
KEYS = 5
AWAY = 3.0  # seconds
# librdkafka begins anew unless it is not yet done with the answer: so that has to be a long one.
PARTITIONS = 100
# Asked again soon, as everybody asks when brokers come back.
SOON = {"metadata.max.age.ms": "500"}


@pytest.fixture
def proxy(make_kafka_cluster: ClusterMaker) -> Iterator[ForgettingProxy]:
    with contextlib.closing(ForgettingProxy()) as made:
        told = {"advertised.listeners": f"CLIENT://127.0.0.1:{made.port}"}
        made.target = make_kafka_cluster(properties=told).saved_state.ports[0].client
        yield made


@pytest.fixture
def driver(proxy: ForgettingProxy, connect_to: Connect) -> KafkaDriver:
    return connect_to(f"kafka://127.0.0.1:{proxy.port}", client_properties=SOON)


def forget(proxy: ForgettingProxy) -> None:
    """Forget for as long as a broker takes to come back; librdkafka bears the first such answer."""
    proxy.forgets = True
    until(lambda: proxy.spoilt, "a spoilt answer")
    time.sleep(AWAY)
    proxy.forgets = False


@pytest.mark.parametrize("client", ["confluent-kafka"])
def test_a_new_producer_goes_on_with_all_that_the_old_one_holds(
    fragile: Cluster, connect_to: Connect, topic: str
) -> None:
    driver = connect_to(fragile.url)
    driver.admin().create_topic(topic, 2)
    failures: list[MessagingException] = []
    settled: list[Receipt | MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    ours: Any = publisher._publisher
    offer(publisher, topic, range(COUNT), settled)
    assert publisher.flush(PATIENCE) == 0
    fragile.kill_node(1, signal.SIGSTOP)
    offer(publisher, topic, range(COUNT, 2 * COUNT), settled)
    renewing = threading.Thread(target=ours._renew)
    renewing.start()
    until(lambda: ours._holdback.active, "the change")
    offer(publisher, topic, range(2 * COUNT, 3 * COUNT), settled)
    flushed: list[int] = []
    flushing = threading.Thread(target=lambda: flushed.append(publisher.flush(PATIENCE)))
    flushing.start()
    renewing.join()
    fragile.kill_node(1, signal.SIGCONT)
    flushing.join()
    assert flushed == [0]
    check(driver, topic, settled, failures)


def test_a_publisher_goes_on(proxy: ForgettingProxy, driver: KafkaDriver, topic: str) -> None:
    driver.admin().create_topic(topic, PARTITIONS)
    failures: list[MessagingException] = []
    settled: list[Receipt | MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    offer(publisher, topic, range(COUNT), settled)
    assert publisher.flush(PATIENCE) == 0
    forget(proxy)
    offer(publisher, topic, range(COUNT, 3 * COUNT), settled)
    assert publisher.flush(2 * PATIENCE) == 0
    check(driver, topic, settled, failures)


def offer(publisher: Publisher, topic: str, numbers: range, settled: list[Any]) -> None:
    for number in numbers:
        told: OnSettled | None = settled.append if number % 3 == 0 else None  # some are waited for
        value, key = b"%d" % number, b"k%d" % (number % KEYS)
        publisher.offer(Record(topic, value, key, (("n", value),)), told)


def check(driver: KafkaDriver, topic: str, settled: list[Any], failures: list[Any]) -> None:
    """Something may be there twice, but nothing lost or out of its order."""
    assert failures == []
    assert [type(each) for each in settled] == [Receipt] * COUNT
    found = [delivery.record for span in driver.spans([topic]) for delivery in driver.read(span)]
    for key in range(KEYS):
        mine = [int(record.value or b"") for record in found if record.key == b"k%d" % key]
        assert list(dict.fromkeys(mine)) == list(range(key, 3 * COUNT, KEYS))
    assert all(record.headers == (("n", record.value),) for record in found)


def test_a_listener_goes_on(proxy: ForgettingProxy, driver: KafkaDriver, topic: str) -> None:
    driver.admin().create_topic(topic, PARTITIONS)
    publish(driver, Record(topic, b"0", b"k"))
    member = driver.subscribe([topic], topic, "earliest")
    (first,) = gather(member, 1)
    member.commit({first.partition: first.offset + 1})
    forget(proxy)
    publish(driver, Record(topic, b"1", b"k"))
    (second,) = gather(member, 1, 2 * PATIENCE)
    assert second.record.value == b"1"
    member.commit({second.partition: second.offset + 1})
    assert driver.admin().describe_group(topic).positions == {second.partition: 2}


def test_a_listener_that_owes_a_commit_goes_on(
    proxy: ForgettingProxy, connect_to: Connect, topic: str
) -> None:
    driver = connect_to(f"kafka://127.0.0.1:{proxy.port}", client_properties=SOON, session_timeout=6.0)
    driver.admin().create_topic(topic, PARTITIONS)
    member = driver.subscribe([topic], topic, "earliest")
    for value in (b"0", b"1"):
        publish(driver, Record(topic, value, b"k"))
        (latest,) = gather(member, 1)
        if value == b"0":
            member.commit({latest.partition: 1})
    forget(proxy)
    owed = {latest.partition: latest.offset + 1}

    def paid() -> bool:
        """As a listener does, who does not poll while it owes something."""
        try:
            member.commit(owed)
        except TransportUnavailable:
            return False
        except CommitRefused:
            # A new member has it again.
            assert [delivery.record.value for delivery in gather(member, 1)] == [b"1"]
            return False
        return True

    until(paid, "the commit")
    assert driver.admin().describe_group(topic).positions == owed


def test_an_administrator_goes_on(proxy: ForgettingProxy, driver: KafkaDriver, topic: str) -> None:
    driver.admin().create_topic(topic, 1)
    forget(proxy)

    def lists() -> bool:
        with contextlib.suppress(MessagingException):
            return topic in driver.admin().list_topics()
        return False

    until(lists, "the topics")


def test_a_record_that_is_refused_before_the_next_is_taken_is_not_lost(
    make_kafka_cluster: ClusterMaker, connect_to: Connect, topic: str
) -> None:
    """librdkafka takes the first for written then; to a broker before KAFKA-15591 it is not."""
    with contextlib.closing(RefusingProxy(topic)) as proxy:
        told = {"advertised.listeners": f"CLIENT://127.0.0.1:{proxy.port}"}
        proxy.target = make_kafka_cluster(properties=told).saved_state.ports[0].client
        driver = connect_to(f"kafka://127.0.0.1:{proxy.port}", linger=0.0)
        driver.admin().create_topic(topic, 1)
        failures: list[MessagingException] = []
        settled: list[Receipt | MessagingException] = []
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
        publisher.offer(Record(topic, b"0"), settled.append)
        until(lambda: proxy.refused, "the first request")
        publisher.offer(Record(topic, b"1"))
        assert publisher.flush(PATIENCE) == 0
        assert failures == []
        (receipt,) = settled
        (span,) = driver.spans([topic])
        found = {each.record.value: each.offset for each in driver.read(span)}
        assert sorted(found) == [b"0", b"1"]
        assert receipt == Receipt(span.partition, found[b"0"])
        driver.close()
