"""Pytest fixtures with real Kafka brokers: name this module in ``pytest_plugins``.

A cluster starts when the first test asks for it and runs until the end of the session. A broker
that cannot start is an error, never a skip. The processes end with the session, also when
the test run is killed.
"""

import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMESPACE = "notifier_kafka.clusters"

# Seconds that brokers get to stop before they are killed: three would wait for each other.
AT_ONCE = 0.0

# Starts a cluster in a new directory, and stops it after the test. Takes the arguments of the
# cluster class, except for the directory.
ClusterMaker = Callable[..., Any]

SHOWN_LOG_LINES = 40


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last lines of the brokers' logs with a failed test."""
    report = yield
    if report.failed:
        for name, fixture in getattr(item, "funcargs", {}).items():
            for log in _logs(fixture):
                lines = log.read_text(errors="replace").splitlines()[-SHOWN_LOG_LINES:]
                report.sections.append((f"{name}: {log}", "\n".join(lines)))
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
    """Start or resume the nodes of a cluster that a test stopped, killed or suspended."""
    for node in cluster.nodes:
        node.kill(signal.SIGCONT)
    cluster.start()


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of one broker, for the whole session. Use unique names for topics and groups."""
    cluster = _started(tmp_path_factory.mktemp("kafka"))
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture(scope="session")
def kafka_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of three brokers, for the whole session. Do not stop any of them."""
    cluster = _started(tmp_path_factory.mktemp("kafka-three"), 3)
    yield cluster
    cluster.stop(AT_ONCE)


@pytest.fixture
def make_kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterMaker]:
    """A function that starts a cluster for one test, which may secure it or break it."""
    made: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        made.append(_started(tmp_path_factory.mktemp("kafka-own"), *arguments, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop(AT_ONCE)
