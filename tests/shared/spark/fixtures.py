"""One Spark for all tests: the first query alone takes longer than most of them."""

import gc
import os
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    from notifier_kafka.jvm import jars
    from spark_sinks.engine import session

    started = session.start(session.SessionSettings(master="local[2]", jars=jars.fetch(jars.SPARK_KAFKA)))
    yield started
    started.stop()
    with warnings.catch_warnings():
        # Here, lest they be found in the test of somebody else.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def jvm() -> Iterator[Callable[[], dict[str, str]]]:
    """A function that returns the environment for a program whose Spark is in a JVM that is warm.

    One program at a time. It may have been killed: what it left running is stopped.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    from notifier_kafka.jvm import jars, java
    from spark_sinks.engine import session

    os.environ["JAVA_HOME"] = str(java.home_for_spark(java.find(java.SPARK)))
    properties = session.properties(
        session.SessionSettings(master="local[2]", jars=jars.fetch(jars.SPARK_KAFKA))
    )
    gateway = launch_gateway(SparkConf().setAll(list(properties.items())))

    def lend() -> dict[str, str]:
        contexts = getattr(getattr(gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$")
        left = contexts.getActive()
        if left.isDefined():
            left.get().stop()
        door = gateway.gateway_parameters
        return os.environ | {
            "PYSPARK_GATEWAY_PORT": str(door.port),
            "PYSPARK_GATEWAY_SECRET": str(door.auth_token),
        }

    yield lend
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
