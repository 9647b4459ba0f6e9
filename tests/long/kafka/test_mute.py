"""A broker that hangs: what is offered to a producer that hears nothing of it."""

import os
import signal
import time
from typing import Any

import pytest

from notifier_kafka.contract.driver import Limits, Receipt, Record
from notifier_kafka.errors import DeliveryGivenUp, MessagingException, OutboxFull
from notifier_kafka_drivers.kafka.clients.confluent.connection import SUSPICIOUS_SECONDS
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, hung, publish, until

pytestmark = pytest.mark.parametrize("client", ["confluent-kafka"])
COUNT = 1_000


@pytest.fixture
def driver(fragile: Cluster, connect_to: Connect, topic: str) -> KafkaDriver:
    made = connect_to(fragile.url)
    made.admin().create_topic(topic, 1)
    return made


class Publishing:
    """A publisher that a broker answered, and what became of the records, which are numbers."""

    def __init__(self, driver: KafkaDriver, topic: str, limits: Limits = Limits()) -> None:
        self.driver, self.topic = driver, topic
        self.accepted: list[int] = []
        self.failed: list[int] = []
        self.settled: list[Receipt | MessagingException] = []
        self.gate: Any = driver.publisher(
            lambda record, _: self.failed.append(int(record.value or b"")), limits
        )
        self.offer(range(-1, 0))
        assert self.gate.flush(PATIENCE) == 0

    def offer(self, numbers: range, padding: int = 0) -> None:
        for number in numbers:
            told = self.settled.append if number % 3 == 0 else None  # some are waited for
            self.gate.offer(Record(self.topic, b"%0*d" % (padding, number), b"k"), told)
            self.accepted.append(number)

    def await_silence(self) -> None:
        until(lambda: self.gate._publisher._holdback.active, "it to be noticed that nothing is heard")

    def aside(self) -> int:
        return len(self.gate._publisher._holdback)

    def held(self) -> int:
        return len(self.gate._publisher._producer)

    def arrived(self) -> list[int]:
        (span,) = self.driver.spans([self.topic])
        return [int(delivery.record.value or b"") for delivery in self.driver.read(span)][1:]


def test_what_is_offered_waits_a_moment_and_goes_on_together(
    fragile: Cluster, driver: KafkaDriver, topic: str
) -> None:
    publishing = Publishing(driver, topic)
    with hung(fragile):
        publishing.offer(range(COUNT))
        publishing.await_silence()
        waited = 0
        for number in range(COUNT, 2 * COUNT):
            publishing.offer(range(number, number + 1))
            waited = max(waited, publishing.aside())
        assert waited > 0
        until(lambda: publishing.held() == 2 * COUNT, "it to be handed over")
        publishing.await_silence()
        publishing.offer(range(2 * COUNT, 3 * COUNT))
        # One that is being handed over counts twice.
        assert publishing.gate.flush(0.5) in (3 * COUNT, 3 * COUNT + 1)
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == list(range(3 * COUNT))
    assert publishing.failed == []
    assert [type(each) for each in publishing.settled] == [Receipt] * COUNT
    # And then as ever.
    publishing.offer(range(3 * COUNT, 4 * COUNT))
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == list(range(4 * COUNT))


def test_longer_than_a_connection_lasts(fragile: Cluster, connect_to: Connect, topic: str) -> None:
    driver = connect_to(fragile.url, client_properties={"socket.timeout.ms": "2000"})
    driver.admin().create_topic(topic, 1)
    publishing = Publishing(driver, topic)
    with hung(fragile):
        publishing.offer(range(COUNT))
        publishing.await_silence()
        until(lambda: publishing.gate._publisher._state.down, "the connection to be given up")
        publishing.offer(range(COUNT, 2 * COUNT))
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == list(range(2 * COUNT))


def test_a_topic_that_nobody_leads_holds_up_no_other(trio: Cluster, connect_to: Connect, topic: str) -> None:
    driver = connect_to(trio.url, topic_replication=1)

    def made(number: int) -> tuple[str, int]:
        name = f"{topic}-{number}"
        driver.admin().create_topic(name, 1, {"min.insync.replicas": "1"})
        publish(driver, Record(name, b"-1"))
        return name, leader(driver, name)

    lost, home = made(0)
    # Brokers that have just come do not lead all that is made yet.
    led = next(name for name, at in map(made, range(1, 100)) if at != home)
    publishing = Publishing(driver, led)
    trio.kill_node(home, signal.SIGKILL)
    for number in range(COUNT):
        publishing.gate.offer(Record(lost, b"%d" % number))
    publishing.await_silence()
    publishing.offer(range(3))
    # Sooner than all is handed over before the client is looked at.
    until(lambda: publishing.settled, "the receipt of another topic's record", SUSPICIOUS_SECONDS - 5)
    trio.start_node(home)
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == [-1, 0, 1, 2]
    publishing.topic = lost
    assert publishing.arrived() == list(range(COUNT))


@pytest.mark.parametrize(("limits", "most"), [(Limits(records=100), 100), (Limits(bytes=200_000), 300)])
def test_the_bounds_of_an_outbox_hold(
    fragile: Cluster, driver: KafkaDriver, topic: str, limits: Limits, most: int
) -> None:
    publishing = Publishing(driver, topic, limits)
    with hung(fragile):
        publishing.offer(range(10))
        publishing.await_silence()
        with pytest.raises(OutboxFull):
            publishing.offer(range(10, COUNT), padding=1_200)
        # In this order: they go from there to here.
        assert publishing.held() + publishing.aside() <= most
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == publishing.accepted[1:]
    assert publishing.failed == []


def test_who_closes_meanwhile_is_told_of_each(fragile: Cluster, driver: KafkaDriver, topic: str) -> None:
    publishing = Publishing(driver, topic)
    with hung(fragile):
        publishing.offer(range(COUNT))
        publishing.await_silence()
        publishing.offer(range(COUNT, 2 * COUNT))
        publishing.gate.close()
        assert {type(each) for each in publishing.settled} == {DeliveryGivenUp}
        assert len(publishing.settled) + len(publishing.failed) == 2 * COUNT


@pytest.mark.parametrize("kind", ["it has its time", "no connection"])
def test_one_that_would_not_mind_gets_all_at_once(
    fragile: Cluster, driver: KafkaDriver, topic: str, kind: str
) -> None:
    publishing = Publishing(driver, topic, Limits(retry=3 if kind == "it has its time" else -1))
    fragile.kill_node(1, signal.SIGSTOP if kind == "it has its time" else signal.SIGKILL)
    publishing.offer(range(COUNT))
    assert publishing.gate.flush(3.0) == COUNT
    assert not publishing.gate._publisher._holdback.active
    assert publishing.held() == COUNT
    if kind == "no connection":
        fragile.start_node(1)
    else:
        fragile.kill_node(1, signal.SIGCONT)
    assert publishing.gate.flush(PATIENCE) == 0
    assert publishing.arrived() == list(range(COUNT))


def test_a_child_process_publishes_though_its_parent_hears_nothing(
    fragile: Cluster, driver: KafkaDriver, topic: str
) -> None:
    publishing = Publishing(driver, topic)
    with hung(fragile):
        publishing.offer(range(COUNT))
        publishing.await_silence()
        child = os.fork()
        if not child:
            left = 1
            try:
                publishing.offer(range(COUNT, COUNT + 1))
                left = publishing.gate.flush(PATIENCE)
            finally:
                os._exit(left)
        time.sleep(0.5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert publishing.gate.flush(PATIENCE) == 0
    assert sorted(publishing.arrived()) == list(range(COUNT + 1))


def leader(driver: KafkaDriver, topic: str) -> int:
    return int(driver.admin().describe_topic(topic).details["partition 0"].split(";")[0].split()[1])
