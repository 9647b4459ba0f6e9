"""For tests with kafka-python in their own process: what it leaves to the garbage collector.

A client that is closed while it makes a connection drops the socket without closing it. Python
warns of that whenever it collects, which may be in the test of somebody else.
"""

import gc
import warnings
from collections.abc import Iterator

import pytest


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
