"""The local cluster, run for real: the brokers are Apache Kafka's, the client is kafka-python."""

import argparse
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafka
import pytest
from kafka.admin import NewTopic

from notifier_kafka.errors import ConfigurationError, TransportUnavailable
from notifier_kafka.testing.clusters import ClusterMaker, kafka_cluster
from notifier_kafka_drivers.kafka.local import commands
from notifier_kafka_drivers.kafka.local.broker_users import ADMIN, CLIENT, Security
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from notifier_kafka_drivers.kafka.local.process import Process
from tests.shared.checkout import ROOT

# The fixture as users of the plugin have it: a broker for each process of a test run.
__all__ = ["kafka_cluster"]

CLIENTS = ("confluent-kafka", "kafka-python")
DEADLINE = 60.0


def login(cluster: Cluster, user: str = ADMIN, **changes: Any) -> dict[str, Any]:
    """What kafka-python needs to connect as ``user``."""
    names = {
        "sasl_username": "sasl_plain_username",
        "sasl_password": "sasl_plain_password",
        "ssl_client_cert_file": "ssl_certfile",
        "ssl_client_key_file": "ssl_keyfile",
    }
    options = {names.get(name, name): value for name, value in cluster.options(user).items()}
    return {"bootstrap_servers": cluster.bootstrap, **options, **changes}


def publish(settings: dict[str, Any], topic: str, *values: bytes) -> None:
    _bare("publish", settings, topic, *(value.decode() for value in values))


def read(settings: dict[str, Any], topic: str, count: int) -> list[bytes]:
    return _bare("read", settings, topic, str(count)).encode().splitlines()


def _bare(verb: str, settings: dict[str, Any], *arguments: str) -> str:
    script = ROOT / "tests/shared/kafka/bare_client.py"
    command = [sys.executable, str(script), json.dumps(settings), verb, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


ATTEMPT = """
import json, logging, sys, kafka
logging.basicConfig(stream=sys.stdout, level=logging.WARNING)
settings = json.loads(sys.argv[1])
try:
    kafka.KafkaProducer(bootstrap_timeout_ms=3000, **settings).send("refused", b"x").get(10)
except kafka.errors.KafkaError as error:
    print(type(error).__name__, error)
"""


def refused(settings: dict[str, Any]) -> str:
    """What publishing ends in, in a process of its own: kafka-python leaves sockets open."""
    command = [sys.executable, "-c", ATTEMPT, json.dumps(settings)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Error" in said
    return said


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listening(port: int) -> set[str]:
    """The addresses on which this machine listens at a port, as the kernel writes them."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return {row[1].split(":")[0] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"}


def test_a_broker_takes_records_and_gives_them_back(kafka_cluster: Cluster) -> None:
    topic = uuid.uuid4().hex
    publish(login(kafka_cluster), topic, b"one", b"two")
    assert read(login(kafka_cluster), topic, 2) == [b"one", b"two"]
    assert kafka_cluster.url == f"kafka://{kafka_cluster.bootstrap}"


def test_a_broker_listens_on_loopback_only(kafka_cluster: Cluster) -> None:
    ports = kafka_cluster.saved_state.ports[0]
    assert listening(ports.client) | listening(ports.controller) <= {
        "0100007F",
        "0000000000000000FFFF00000100007F",
    }
    assert listening(ports.client)


def test_another_process_sees_the_broker_and_its_log(kafka_cluster: Cluster) -> None:
    def tool(*arguments: str) -> str:
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "broker", *arguments]
        return subprocess.run(
            [*command, "--directory", kafka_cluster.directory], check=True, capture_output=True, text=True
        ).stdout

    (row,) = json.loads(tool("status", "--json"))
    assert (row["state"], row["address"]) == ("running", kafka_cluster.bootstrap)
    assert row["pid"] == kafka_cluster.status()[0]["pid"]
    assert "Kafka Server started" in tool("logs")

    # A reader that has enough of it.
    command = [sys.executable, "-m", "notifier_kafka.cli.main", "broker", "logs", "--follow"]
    command += ["--directory", str(kafka_cluster.directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        following.stdout.close()
        assert following.wait(60) == 141
        assert following.stderr.read() == b""


def test_a_secured_broker_is_started_used_and_stopped_by_commands(tmp_path: Path) -> None:
    where = ["--directory", str(tmp_path / "it")]

    def tool(*arguments: str, exit_code: int = 0) -> str:
        command = [sys.executable, "-m", "notifier_kafka.cli.main", *arguments]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert ended.returncode == exit_code, (arguments, ended.stdout, ended.stderr)
        return ended.stdout

    form = ["--nodes", "1", "--tls", "--sasl", "plain", "--acls", "--port", "0"]
    said = dict(line.split(" = ") for line in tool("broker", "start", *form, *where).splitlines())
    try:
        url, ini = said["transport_url"], said["config_file"]
        for client in CLIENTS:
            given = ["--config-file", ini, "--transport-url", f"{url}?client={client}"]
            tool(*given, "send", "--topic", f"by-{client}", "1")
            given[1] = said["config_file_of_client"]
            tool(*given, "topics", "create", f"of-{client}", exit_code=3)
        assert json.loads(tool("broker", "stop", "--json", *where))[0]["state"] == "stopped"
        assert json.loads(tool("broker", "status", "--json", *where))[0]["state"] == "stopped"
        assert url in tool("broker", "start", *where)
        listed = json.loads(tool("--config-file", ini, "--transport-url", url, "topics", "list", "--json"))
        assert [row["name"] for row in listed] == sorted(f"by-{client}.info" for client in CLIENTS)
    finally:
        tool("broker", "stop", *where)


def test_a_second_start_leaves_a_running_broker_alone(kafka_cluster: Cluster) -> None:
    before = kafka_cluster.status()
    Cluster.open(kafka_cluster.directory).start()
    assert kafka_cluster.status() == before


def test_another_form_is_refused_for_the_same_directory(kafka_cluster: Cluster) -> None:
    with pytest.raises(ConfigurationError, match="has 1 node from port"):
        Cluster(kafka_cluster.directory, 3)
    with pytest.raises(ConfigurationError, match="no TLS, no login, no ACLs"):
        Cluster(kafka_cluster.directory, security=Security(tls=True))
    with pytest.raises(ConfigurationError, match="there is no node 2"):
        kafka_cluster.logs(2)


def test_a_path_that_kafka_would_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has a comma"):
        Cluster(tmp_path / "a,b")


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TransportUnavailable, match=f"port {port} of 127.0.0.1 is taken"):
            Cluster(tmp_path, port=port).start()


def test_a_wrong_property_is_quoted(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, properties={"log.cleaner.dedupe.buffer.size": "1"}, ends_with_parent=True)
    with pytest.raises(TransportUnavailable, match="must be at least 1MB"):
        cluster.start()


def test_a_port_alone_takes_as_many_nodes_as_the_last_time(tmp_path: Path) -> None:
    made = Cluster(tmp_path, 3)
    made.saved_state.save(tmp_path)
    port = made.saved_state.ports[0].client
    given = {"directory": str(tmp_path), "nodes": None, "tls": False, "sasl": None, "acls": False}
    assert len(commands._described(argparse.Namespace(port=port, **given)).nodes) == 3


def test_a_broker_that_does_not_start_is_quoted_and_ended(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ends_with_parent=True)
    with socket.create_server(("127.0.0.1", cluster.saved_state.ports[0].controller)):
        with pytest.raises(TransportUnavailable, match=r"Address already in use.*see .*server.log"):
            cluster.start()
        assert cluster.status()[0]["state"] == "stopped"
    cluster.start()
    cluster.stop()


def test_what_was_acknowledged_survives_kill_and_stop(make_kafka_cluster: ClusterMaker) -> None:
    cluster = make_kafka_cluster()
    publish(login(cluster), "kept", b"one")
    cluster.kill_node(1)
    assert cluster.status()[0] == cluster.status()[0] | {"state": "stopped", "pid": None}
    cluster.start_node(1)
    publish(login(cluster), "kept", b"two")
    # As 'broker stop' does, in another process than the one that started it.
    Cluster.open(cluster.directory).stop()
    assert cluster.status()[0]["state"] == "stopped"
    cluster.start()
    assert read(login(cluster), "kept", 2) == [b"one", b"two"]


def test_a_broker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    # With what a path may hold, and a Java or a file of properties may stumble over.
    directory = tmp_path / 'a brøker\'s = "data" \\n'
    program = (
        "import sys, time\n"
        "from notifier_kafka_drivers.kafka.local.cluster import Cluster\n"
        "cluster = Cluster(sys.argv[1], ends_with_parent=True)\n"
        "cluster.start()\n"
        "print(cluster.status()[0]['pid'], flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, directory], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout
        assert int(owner.stdout.readline()) == Cluster.open(directory).status()[0]["pid"]
        owner.send_signal(signal.SIGKILL)
    wait_for(lambda: Cluster.open(directory).status()[0]["state"] == "stopped")


def test_three_brokers_go_on_without_one(kafka_three_own: Cluster) -> None:
    cluster = kafka_three_own
    with contextlib.closing(kafka.KafkaAdminClient(**login(cluster))) as admin:
        # A broker may hear of the others later than it begins to answer.
        wait_for(lambda: len(admin.describe_cluster()["brokers"]) == 3)
        admin.create_topics([NewTopic("replicated", 1, 3)])
        found: list[dict[str, Any]] = []

        # Each call may ask another broker, which hears of the topic later than the one that created it.
        def described() -> bool:
            found[:] = admin.describe_topics(["replicated"])[0]["partitions"]
            return bool(found)

        wait_for(described)
    [first] = found
    assert sorted(first["replica_nodes"]) == [1, 2, 3]
    publish(login(cluster), "replicated", b"one")
    # The leader, and one of the three that the quorum is of.
    cluster.kill_node(first["leader_id"])
    publish(login(cluster), "replicated", b"two")
    cluster.start_node(first["leader_id"])
    assert [node["state"] for node in cluster.status()] == ["running"] * 3
    assert read(login(cluster), "replicated", 2) == [b"one", b"two"]


@pytest.fixture
def kafka_three_own(make_kafka_cluster: ClusterMaker) -> Cluster:
    cluster: Cluster = make_kafka_cluster(3)
    return cluster


def test_tls_takes_its_own_authority_and_the_right_host_only(
    make_kafka_cluster: ClusterMaker, tmp_path: Path
) -> None:
    cluster = make_kafka_cluster(security=Security(tls=True, hosts=("127.0.0.1",)))
    for user in (ADMIN, CLIENT):
        publish(login(cluster, user), "secret", b"x")
    publish(login(cluster, ssl_certfile=None, ssl_keyfile=None), "secret", b"x")
    foreign = Cluster(tmp_path, security=Security(tls=True))
    foreign._authority.create()
    foreign._authority.sign(ADMIN)
    strange = login(foreign)
    assert "CERTIFICATE_VERIFY_FAILED" in (refused(login(cluster, ssl_cafile=strange["ssl_cafile"])))
    _, port = cluster.bootstrap.split(":")
    assert "ostname mismatch" in (refused(login(cluster, bootstrap_servers=f"localhost:{port}")))
    refused(login(cluster, ssl_certfile=strange["ssl_certfile"], ssl_keyfile=strange["ssl_keyfile"]))
    refused({"bootstrap_servers": cluster.bootstrap})


def test_a_plain_login_is_asked_for(make_kafka_cluster: ClusterMaker) -> None:
    cluster = make_kafka_cluster(security=Security(sasl="plain"))
    for user in (ADMIN, CLIENT):
        publish(login(cluster, user), "secret", b"x")
    refused(login(cluster, sasl_plain_password="wrong"))
    # kafka-python drops the broker's answer when the connection ends right behind it.
    assert "Authentication failed: Invalid username or password" in cluster.logs().read_text()
    refused({"bootstrap_servers": cluster.bootstrap})


def test_scram_over_tls_with_acls(make_kafka_cluster: ClusterMaker) -> None:
    cluster = make_kafka_cluster(security=Security(tls=True, sasl="scram", acls=True))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        publish(login(cluster, sasl_mechanism=mechanism), "secret", b"x")
    assert "TopicAuthorizationFailed" in refused(login(cluster, CLIENT))
    refused(login(cluster, sasl_plain_password="wrong"))
    assert "due to invalid credentials with SASL mechanism SCRAM-SHA-512" in cluster.logs().read_text()


def test_nobody_else_reads_a_secret(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "it", security=Security(tls=True, sasl="scram"))
    assert not (tmp_path / "it").exists()
    with cluster._locked():
        cluster._configure()
    passwords = cluster.saved_state.passwords.values()
    telling = [
        path
        for path in cluster.directory.rglob("*")
        if path.is_file()
        and (path.suffix == ".key" or any(p.encode() in path.read_bytes() for p in passwords))
    ]
    assert {path.name for path in telling} >= {"cluster.json", "admin.conf", "server.properties", "ca.key"}
    for path in [cluster.directory, *telling]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert not any(password in repr(cluster.saved_state) for password in passwords)


def test_a_process_with_a_recycled_id_is_left_alone(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with subprocess.Popen(["sleep", "600"]) as bystander:
        cluster.saved_state.processes[1] = Process(bystander.pid, "another boot/1")
        cluster.saved_state.save(cluster.directory)
        opened = Cluster.open(tmp_path)
        assert opened.status()[0]["state"] == "stopped"
        opened.stop()
        opened.kill_node(1)
        assert bystander.poll() is None
        os.kill(bystander.pid, signal.SIGKILL)


def test_a_java_that_was_asked_for_is_taken_or_refused(tmp_path: Path) -> None:
    (tmp_path / "app.conf").write_text("[broker]\njava = /nowhere\n")
    command = [sys.executable, "-m", "notifier_kafka.cli.main", "--config-file", str(tmp_path / "app.conf")]
    command += ["broker", "start", "--port", "0", "--directory", str(tmp_path / "it")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (6, "")
    assert "none that is Java 17 or later: /nowhere (option): does not run" in ended.stderr
    assert ended.stderr.count("\n") == 1
