"""One Spark for all tests of this directory: the first query alone takes longer than most tests."""

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from notifier_kafka import jars
from spark_sinks import session

HERE = Path(__file__).parent
# The helpers of these tests are modules beside them.
sys.path.insert(0, str(HERE))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # py4j leaves sockets to the garbage collector.
    left = pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    )
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(left)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    started = session.start(session.Settings(master="local[2]", jars=jars.fetch(jars.SPARK_KAFKA)))
    yield started
    started.stop()
    with warnings.catch_warnings():
        # Here, lest they be found in the test of somebody else.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
