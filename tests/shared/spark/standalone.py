"""A cluster of Spark's own on this machine: a master and a worker, each a process."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from notifier_kafka.jvm import java

DEADLINE = 120.0
HOME = Path(pyspark.__file__).parent


def environment() -> dict[str, str]:
    home = str(java.home_for_spark(java.find(java.SPARK)))
    return os.environ | {"JAVA_HOME": home, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """Run a master with a worker of two cores; yield the master's URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        running.enter_context(_process(directory, "master.Master", "-h", "127.0.0.1", "-p", str(port)))
        place = ["-h", "127.0.0.1", "-c", "2", "-m", "1g", "-d", str(directory / "work"), url]
        worker = running.enter_context(_process(directory, "worker.Worker", *place))
        deadline = time.monotonic() + DEADLINE
        while "Successfully registered with master" not in (directory / "worker.Worker").read_text():
            assert worker.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield url


@contextmanager
def _process(directory: Path, name: str, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    # It ends with us, whatever becomes of us.
    command = ["setpriv", "--pdeathsig", "TERM", str(HOME / "bin" / "spark-class")]
    command += [f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments]
    with (directory / name).open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(), cwd=directory)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE)
