"""Drivers of either client library, and brokers to do harm to, for all tests that ask for them."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.testing.clusters import AT_ONCE, mend
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.kafka import options
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.kafka_rig import Connect
from tests.shared.shared_run import cluster_directory

QUICK = {
    # Seconds instead of tens of them until another broker takes over.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
}


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


@pytest.fixture(scope="session")
def kafka_cluster() -> Cluster:
    """One broker for the whole run, whichever of its processes asks first: choose names of your own."""
    return Cluster.open(cluster_directory("kafka", 1))


@pytest.fixture
def connect(kafka_cluster: Any, connect_to: Connect) -> Connect:
    """Make a driver on the session's broker, with values for its options."""
    return lambda **values: connect_to(kafka_cluster.url, **values)


@pytest.fixture(scope="session")
def fragile_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("fragile"), ends_with_parent=True)
    cluster.start()
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture(scope="session")
def trio_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("trio"), 3, properties=QUICK, ends_with_parent=True)
    cluster.start()
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture
def fragile(fragile_for_all: Cluster) -> Iterator[Cluster]:
    """A broker to stop, kill or hang; it runs again for the next test."""
    yield fragile_for_all
    mend(fragile_for_all)


@pytest.fixture
def trio(trio_for_all: Cluster) -> Iterator[Cluster]:
    """Three brokers, two of which must have a record, to break; whole again for the next test."""
    yield trio_for_all
    mend(trio_for_all)


@pytest.fixture
def topic() -> str:
    """The name of a topic that is not there."""
    return f"test-{uuid.uuid4().hex[:12]}"
