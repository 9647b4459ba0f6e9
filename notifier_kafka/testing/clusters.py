"""Pytest fixtures with real Kafka brokers: name this module in ``pytest_plugins``.

A cluster is started when the first test asks for it and lasts for the session. A broker
that cannot be had is an error, never a skip. Its processes end with the session, also
when the test run itself is killed.
"""

import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMESPACE = "notifier_kafka.clusters"

# Three brokers that are asked to stop wait for each other, and nobody needs their data.
AT_ONCE = 0.0

# Makes and starts a cluster in a directory of its own, and stops it after the test. Takes the
# arguments of the cluster class, except for the directory.
ClusterMaker = Callable[..., Any]

SAID = 40  # lines


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure what the brokers said last: they are gone when one comes to look."""
    report = yield
    if report.failed:
        for name, fixture in getattr(item, "funcargs", {}).items():
            for log in _logs(fixture):
                said = log.read_text(errors="replace").splitlines()[-SAID:]
                report.sections.append((f"{name}: {log}", "\n".join(said)))
    return report


def _logs(fixture: object) -> list[Path]:
    nodes = getattr(fixture, "nodes", ())
    logs = [node.log for node in nodes] if isinstance(nodes, list) else []
    return [log for log in logs if log.exists()]


def _started(directory: Path, *arguments: Any, **options: Any) -> Any:
    from notifier_kafka.contract import plugins

    cluster = plugins.load(NAMESPACE, "kafka")(directory, *arguments, ends_with_parent=True, **options)
    cluster.start()
    return cluster


def mend(cluster: Any) -> None:
    """Have all nodes of a cluster run again that a test stopped, killed or suspended."""
    for node in cluster.nodes:
        node.kill(signal.SIGCONT)
    cluster.start()


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of one broker, for the whole session: choose topic and group names of your own."""
    cluster = _started(tmp_path_factory.mktemp("kafka"))
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture(scope="session")
def kafka_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of three brokers, for the whole session: leave all of them running."""
    cluster = _started(tmp_path_factory.mktemp("kafka-three"), 3)
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture
def make_kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterMaker]:
    """A function that starts a cluster for one test: secured, or to be broken."""
    made: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        made.append(_started(tmp_path_factory.mktemp("kafka-own"), *arguments, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop(AT_ONCE)
