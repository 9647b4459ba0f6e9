"""Real brokers for the tests of this directory."""

import gc
import pathlib
import warnings
from collections.abc import Iterator

import pytest

# By import: only the conftest of the top directory may name plugins.
from notifier_kafka.testing.clusters import kafka_cluster, kafka_three, make_kafka_cluster

__all__ = ["kafka_cluster", "kafka_three", "make_kafka_cluster"]

HERE = pathlib.Path(__file__).parent
# kafka-python leaves a socket whose connection failed to the garbage collector.
LEFT_SOCKET = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"


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
def left_sockets() -> Iterator[None]:
    """Collect what a test left, lest it be found in the test of somebody else."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
