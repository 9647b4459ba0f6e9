"""The same job over a real broker, read by Spark's connector."""

import contextlib
import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from kafka.admin import KafkaAdminClient
from oslo_config import cfg
from pyspark.sql import SparkSession

from notifier_kafka.contract.driver import Delivery
from notifier_kafka.errors import ConfigurationError, LogUnusable, TransportUnavailable
from notifier_kafka.testing.clusters import kafka_cluster, make_kafka_cluster
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.kafka.local.broker_users import Security
from spark_sinks.sources import kafka_properties, source
from spark_sinks.state import plan
from tests.long.spark import test_kills
from tests.shared.spark import recount, rig, standalone, traffic
from tests.spark import test_job

__all__ = ["kafka_cluster", "make_kafka_cluster"]

DEADLINE = 120.0


def test_a_job_over_kafka(
    spark: SparkSession, tmp_path: Path, kafka_cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rig.Rig(tmp_path, test_job.FEW, url=kafka_cluster.url)
    made.driver.admin().create_topic("aggregated.info", 3)
    sent = traffic.records(traffic.notifications(300, seed=7), "aggregated.info")
    made.publish(sent[:200])
    figures = f"{kafka_cluster.url.rstrip('/')}/figures"
    outputs = [f"jdbc:sqlite:{tmp_path}/rows.db", figures, f"openmetrics:{tmp_path}/m.prom", "console:"]
    first = made.run(spark, rig.limits(records=150), outputs, ["aggregated"])
    # A partition and a topic that were not there in the first run.
    grow(kafka_cluster, "aggregated.info", 4)
    made.driver.admin().create_topic("aggregate.more.info", 1)
    more = traffic.records(traffic.notifications(20, seed=8), "aggregate.more.info")
    # Without a key a client may put them all into one partition; a key each fills the new one.
    rest = [record._replace(key=b"%d" % number) for number, record in enumerate(sent[200:])]
    made.publish([*rest, *sent[:30], *more])
    second = made.run(spark, rig.limits(), outputs, ["aggregat*.info"])
    assert first.read == 150
    assert first.read + second.read == len(sent) + 30 + len(more)
    assert {"aggregated.info[3]", "aggregate.more.info[0]"} <= set(second.offsets)
    truth = made.truth(["aggregated.info", "aggregate.more.info"])
    assert recount.compare(test_job.table(tmp_path / "rows.db"), truth, made.metrics) == []
    assert recount.compare(newest(made.deliveries(["figures"])), truth, made.metrics) == []
    named = {metric for metric, *_ in truth}
    exposed, shown = (tmp_path / "m.prom").read_text(), capsys.readouterr().out
    assert {name.replace(".", "_") for name in named} == set(re.findall(r"^# TYPE (\S+) ", exposed, re.M))
    assert all(name in shown for name in named)

    # A partition may have several spans, when something between them was counted before.
    spans = made.driver.spans(["aggregated.info"])
    parts = [part for span in spans for part in plan.uncounted(span, ((2, 5),))]
    frame = source.load(made.driver.url).read(spark, parts)
    assert frame.count() == plan.records(parts) == len(sent) + 30 - 3 * 4
    made.transport.cleanup()


def newest(deliveries: Iterable[Delivery]) -> dict[recount.Key, float]:
    """Read a topic of figures as its consumers are told to: of each window those of the highest batch."""
    found = [json.loads(each.record.value or b"") for each in deliveries]
    batches: dict[tuple[str, str, str], int] = {}
    for row in found:
        window = row["metric"], row["window_start"], row["window_end"]
        batches[window] = max(batches.get(window, 0), row["batch"])
    return rig.keyed(
        row | {name: rig.iso(row[name]) for name in ("window_start", "window_end")}
        for row in found
        if row["batch"] == batches[row["metric"], row["window_start"], row["window_end"]]
    )


@pytest.mark.long
def test_a_job_over_tls_with_a_login(spark: SparkSession, tmp_path: Path, make_kafka_cluster: Any) -> None:
    cluster = make_kafka_cluster(security=Security(tls=True, sasl="scram"))
    made = rig.Rig(tmp_path, test_job.FEW[:1], cluster.url, str(cluster.ini()))
    made.publish(traffic.records(traffic.notifications(40, seed=5), "secret.info"))
    made.run(spark, rig.limits(), [f"parquet:{tmp_path}/out"], ["secret"])
    assert made.parquet("out") == made.truth(["secret.info"])
    made.transport.cleanup()


def grow(cluster: Any, topic: str, partitions: int) -> None:
    """Add partitions, and wait until a record may come into each."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=urlsplit(cluster.url).netloc)) as admin:
        admin.create_partitions({topic: partitions})
        deadline = time.monotonic() + DEADLINE
        while len(admin.describe_topics([topic])[0]["partitions"]) < partitions:
            assert time.monotonic() < deadline


class Moment(logging.Handler):
    """Does something at a line of the log."""

    def __init__(self, words: str, act: Callable[[], object]) -> None:
        super().__init__()
        self.words, self.act = words, act

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self.words:
            self.act()


@contextmanager
def at(words: str, act: Callable[[], object]) -> Iterator[None]:
    handler, log = Moment(words, act), logging.getLogger("spark_sinks.job.job")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def test_a_topic_that_is_deleted_when_it_is_to_be_read(
    spark: SparkSession, tmp_path: Path, kafka_cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = rig.Rig(tmp_path, test_job.FEW[:1], url=kafka_cluster.url)
    admin = made.driver.admin()
    topics = ["gone.info", "stays.info"]
    for topic in topics:
        admin.create_topic(topic, 1)
        made.publish(traffic.records(traffic.notifications(30, seed=3), topic))
    (held,) = made.driver.spans(["gone.info"])
    output = f"jdbc:sqlite:{tmp_path}/rows.db"
    with (
        at("batch 1: planned", lambda: admin.delete_topic("gone.info")),
        pytest.raises(
            LogUnusable, match=r"topic gone\.info, partition 0: .* were deleted with the topic"
        ) as caught,
    ):
        made.run(spark, rig.limits(), [output], ["gone", "stays"])
    assert "\n" not in str(caught.value)
    again = made.run(spark, rig.limits(allow_loss=True), [output], ["gone", "stays"])
    assert (again.lost, again.failures) == (held.stop, {})
    assert "topic gone.info no longer exists: its counts stay, later records are lost" in caplog.messages
    truth = made.truth(["stays.info"])
    assert test_job.table(tmp_path / "rows.db") == truth
    made.transport.cleanup()


@pytest.mark.long
def test_a_broker_that_restarts_while_it_is_read(
    spark: SparkSession, tmp_path: Path, make_kafka_cluster: Any
) -> None:
    cluster = make_kafka_cluster()
    made = rig.Rig(tmp_path, test_job.FEW[:1], url=cluster.url)
    made.driver.admin().create_topic("read.info", 2)
    made.publish(traffic.records(traffic.notifications(50, seed=4), "read.info"))
    truth = made.truth(["read.info"])
    restarted: list[threading.Thread] = []

    def revive() -> None:
        cluster.kill_node(1)
        cluster.start_node(1)

    def restart() -> None:
        # The read begins with a broker that does not answer, and goes on with its successor.
        cluster.kill_node(1, signal.SIGSTOP)
        restarted.append(threading.Timer(2, revive))
        restarted[0].start()

    output = f"jdbc:sqlite:{tmp_path}/rows.db"
    said = []
    with at("batch 1: planned", restart):
        while not made.ledger.last():
            try:
                made.run(spark, rig.limits(), [output], ["read"])
            except TransportUnavailable as error:
                # It may take longer than anybody waits: then the next run does it, and a line says so.
                said.append(str(error))
    restarted[0].join()
    assert test_job.table(tmp_path / "rows.db") == truth
    assert all("\n" not in text for text in said)
    made.transport.cleanup()


@pytest.mark.long
def test_submitted_to_a_cluster(tmp_path: Path, kafka_cluster: Any) -> None:
    made = rig.Rig(tmp_path, test_job.FEW[:1], url=kafka_cluster.url)
    made.driver.admin().create_topic("submitted.info", 2)
    made.publish(traffic.records(traffic.notifications(100, seed=6), "submitted.info"))
    (tmp_path / "m.yaml").write_text(
        "metrics:\n  - {name: count, kind: count, unit: n, group_by: [event_type], window: 1h}\n"
    )
    test_kills.configure(made, [f"parquet:{tmp_path}/out"])
    environment = standalone.environment()
    needed = [sys.executable, "-m", "spark_sinks.submit"]
    needs = subprocess.run(needed, capture_output=True, text=True, check=True, timeout=600, env=environment)
    with standalone.cluster(tmp_path) as master:
        program = [str(standalone.HOME / "bin" / "spark-submit"), "--master", master, *needs.stdout.split()]
        job = ["--config-file", f"{tmp_path}/nk.conf", "--topic", "submitted"]
        done = subprocess.run(
            [*program, *job],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env=environment | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        # It was done there, and not in a local master.
        assert list((tmp_path / "work").glob("app-*/0/stderr"))
    assert made.parquet("out") == made.truth(["submitted.info"])
    made.transport.cleanup()


def properties(text: str, *, ini: str = "") -> dict[str, str]:
    conf = rig.conf(ini)
    return kafka_properties.of_driver(TransportURL.parse(conf, text))


def test_the_drivers_options_as_javas(tmp_path: Path) -> None:
    assert properties("kafka://a,[::1]:9/") == {
        "bootstrap.servers": "a:9092,[::1]:9",
        "security.protocol": "PLAINTEXT",
        "isolation.level": "read_committed",
        "fetch.max.wait.ms": "20",
    }
    ca, cert = tmp_path / "ca.pem", tmp_path / "cert.pem"
    ca.write_text("CA")
    cert.write_text("CERT")
    ini = tmp_path / "nk.conf"
    ini.write_text(
        f"[drivers_kafka]\nsecurity_protocol = SSL\nssl_cafile = {ca}\nssl_client_cert_file = {cert}\n"
        "ssl_check_hostname = false\nsasl_mechanism = SCRAM-SHA-256\n"
        "client_properties = fetch.max.bytes:5,group.id:x,ssl.ca.location:y\n"
    )
    found = properties("kafka://us%22er:pa%5Css@h/", ini=str(ini))
    assert found == {
        "bootstrap.servers": "h:9092",
        "security.protocol": "SASL_SSL",
        "isolation.level": "read_committed",
        "fetch.max.wait.ms": "20",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="us\\"er" password="pa\\\\ss";',
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERT",
        "ssl.keystore.key": "CERT",
        "fetch.max.bytes": "5",
    }


def test_certificates_that_are_not_there(tmp_path: Path) -> None:
    ini = tmp_path / "nk.conf"
    ini.write_text(f"[drivers_kafka]\nsecurity_protocol = SSL\nssl_cafile = {tmp_path}/no.pem\n")
    with pytest.raises(ConfigurationError, match=r"certificate .*/no\.pem cannot be read"):
        properties("kafka://h/", ini=str(ini))
    with pytest.raises(ConfigurationError, match="needs a user"):
        properties("kafka://h/?security_protocol=SASL_PLAINTEXT")


def test_a_private_log_cannot_be_shared() -> None:
    with pytest.raises(ConfigurationError, match="private to one process"):
        source.load(TransportURL.parse(cfg.ConfigOpts(), "sqlite://"))
