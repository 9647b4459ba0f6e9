"""How Spark is started: what of it others on the machine see, and who may speak to it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from notifier_kafka.errors import ConfigurationError
from spark_sinks.engine import session

SECRET = r"hunter2 =:#!\n C:\x\u0041 é,x"
PROGRAM = """
import json, socket, struct, sys
from spark_sinks.engine import session

key = "spark.hadoop.fs.s3a.secret.key"
spark = session.start(session.SessionSettings(master="local[1]", memory="700m", extra={key: sys.argv[1]}))
context = spark.sparkContext
with open(f"/proc/{context._gateway.proc.pid}/cmdline", "rb") as file:
    command = file.read().decode().split("\\0")

def stranger(port):
    # A request as Spark's processes send them to each other, without having said who it is.
    request = struct.pack(">bqi", 3, 1, 4) + b"abcd"
    with socket.create_connection(("127.0.0.1", port), 60) as speaking:
        speaking.sendall(struct.pack(">q", 8 + len(request)) + request)
        return speaking.recv(200).decode("ascii", "replace")

env = context._jvm.org.apache.spark.SparkEnv.get()
ports = [int(context.getConf().get("spark.driver.port")), env.blockManager().blockManagerId().port()]
found = {
    "answers": [stranger(port) for port in ports],
    "sum": spark.range(100).repartition(3).rdd.map(lambda row: row.id).sum(),
    "command": command,
    "known": dict(context.getConf().getAll())[key],
    "of_hadoop": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "default": context.getConf().get("spark.test.default"),
    "name": context.appName,
}
print(json.dumps(found))
spark.stop()
"""
DEFAULTS = "spark.test.default there\nspark.driver.memory 9g\n"
# Read by what starts the JVM, while the properties are there for it.
HOOK = """stat -c %a "$TMPDIR"/*.properties >> "$SPARK_CONF_DIR"/modes\n"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tmp_path = tmp_path_factory.mktemp("started")
    (tmp_path / "conf").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    (tmp_path / "conf" / "spark-env.sh").write_text(HOOK)
    environment = {"SPARK_CONF_DIR": str(tmp_path / "conf"), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, SECRET],
        env=os.environ | environment,
        cwd=tmp_path,
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    modes = (tmp_path / "conf" / "modes").read_text().split()
    texts = [path.read_bytes() for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"modes": set(modes), "left": [text for text in texts if b"hunter2" in text]}


def test_no_property_is_in_the_list_of_processes(started: dict[str, Any]) -> None:
    assert "org.apache.spark.deploy.SparkSubmit" in started["command"]
    assert [word for word in started["command"] if "hunter2" in word] == []
    # All the same they count, those that the JVM is started by included.
    assert started["known"] == started["of_hadoop"] == SECRET
    assert "-Xmx700m" in started["command"]
    assert (started["default"], started["name"]) == ("there", "notifier-kafka")
    # What they were in nobody else could read, and it is gone.
    assert (started["modes"], started["left"]) == ({"600"}, [])


def test_nobody_speaks_to_a_local_spark_without_its_secret(started: dict[str, Any]) -> None:
    """Its ports are on loopback, where every user of the machine is."""
    assert len(started["answers"]) == 2
    assert [answer for answer in started["answers"] if "Expected SaslMessage" not in answer] == []
    # Its own parts know the secret, and so do its Python workers.
    assert started["sum"] == sum(range(100))


def test_a_cluster_has_a_secret_of_its_own_or_none() -> None:
    """Spark makes none there, and would not start."""
    for given in (
        session.SessionSettings(master="spark://head:7077"),
        session.SessionSettings(extra={"spark.master": "spark://head:7077"}),
        session.SessionSettings(master="local-cluster[2,1,1024]"),
    ):
        assert "spark.authenticate" not in session.properties(given)
    assert session.properties(session.SessionSettings(master="local"))["spark.authenticate"] == "true"


def test_a_file_of_properties_that_would_not_count_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--properties-file mine.conf pyspark-shell")
    with pytest.raises(ConfigurationError, match=r"put what it says into .* spark_properties"):
        session._launch({})
