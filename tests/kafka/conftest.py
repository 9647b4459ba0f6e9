"""Real brokers for the tests of this directory."""

import gc
import pathlib
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.driver import Delivery, Limits, Record, Subscription
from notifier_kafka.errors import MessagingException, TransportUnavailable

# By import: only the conftest of the top directory may name plugins.
from notifier_kafka.testing.clusters import kafka_cluster, kafka_three, make_kafka_cluster
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.kafka import options
from notifier_kafka_drivers.kafka.driver import KafkaDriver

__all__ = ["kafka_cluster", "kafka_three", "make_kafka_cluster"]

PATIENCE = 60.0
Connect = Callable[..., KafkaDriver]


HERE = pathlib.Path(__file__).parent
# kafka-python leaves a socket whose TLS handshake failed to the garbage collector.
LEFT_SOCKET = r"ignore:Exception ignored in. <ssl\.SSLSocket:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(LEFT_SOCKET))


@pytest.fixture(scope="session", autouse=True)
def grown_up() -> None:
    """Spare the collections below what was there before the first test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def left_sockets(grown_up: None) -> Iterator[None]:
    """Collect what a test left, lest it be found in the test of somebody else."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(params=["confluent-kafka", "kafka-python"])
def client(request: pytest.FixtureRequest) -> str:
    """Each test that asks for it runs with either client library."""
    return str(request.param)


@pytest.fixture
def connect_to(client: str) -> Iterator[Connect]:
    """Make a driver for a URL, with values for its options."""
    made: list[KafkaDriver] = []

    def connect(url: str, **values: Any) -> KafkaDriver:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        conf.register_opts(options.OPTS, group=options.GROUP)
        for name, value in {"client": client, **values}.items():
            conf.set_override(name, value, group=options.GROUP)
        made.append(KafkaDriver(TransportURL.parse(conf, url)))
        return made[-1]

    yield connect
    for driver in made:
        driver.close()


@pytest.fixture
def connect(kafka_cluster: Any, connect_to: Connect) -> Connect:
    """Make a driver on the session's broker, with values for its options."""
    return lambda **values: connect_to(kafka_cluster.url, **values)


@pytest.fixture
def topic() -> str:
    """The name of a topic that is not there."""
    return f"test-{uuid.uuid4().hex[:12]}"


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait for what has to come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def publish(driver: KafkaDriver, *records: Record) -> None:
    """Publish and see it through."""
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    for record in records:
        publisher.offer(record)
    assert publisher.flush(PATIENCE) == 0
    publisher.close()
    assert failures == []


def gather(member: Subscription, count: int, seconds: float = PATIENCE) -> list[Delivery]:
    """Poll until ``count`` deliveries are there."""
    found: list[Delivery] = []

    def enough() -> bool:
        try:
            found.extend(member.poll(count - len(found), 0.2))
        except TransportUnavailable:
            return False
        return len(found) >= count

    until(enough, f"{count} deliveries", seconds)
    return found
