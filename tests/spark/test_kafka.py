"""The same job over a real broker, read by Spark's connector."""

from pathlib import Path
from typing import Any

import pytest
import recount
import rig
import test_job
import traffic
from oslo_config import cfg
from pyspark.sql import SparkSession

from notifier_kafka.errors import ConfigurationError
from notifier_kafka.testing.clusters import kafka_cluster
from notifier_kafka.url import TransportURL
from spark_sinks import kafka_source, plan, source

__all__ = ["kafka_cluster"]


def test_a_job_over_kafka(spark: SparkSession, tmp_path: Path, kafka_cluster: Any) -> None:
    made = rig.Rig(tmp_path, test_job.FEW, url=kafka_cluster.url)
    made.driver.admin().create_topic("aggregated.info", 3)
    sent = traffic.records(traffic.notifications(300, seed=7), "aggregated.info")
    made.publish(sent[:200])
    output = f"jdbc:sqlite:{tmp_path}/rows.db"
    first = made.run(spark, rig.bounds(records=150), [output], ["aggregated"])
    made.publish([*sent[200:], *sent[:30]])
    second = made.run(spark, rig.bounds(), [output], ["aggregat*.info"])
    assert first.read == 150
    assert first.read + second.read == len(sent) + 30
    truth = made.truth(["aggregated.info"])
    assert recount.compare(test_job.table(tmp_path / "rows.db"), truth, made.metrics) == []

    # A partition may have several spans, when something between them was counted before.
    spans = made.driver.spans(["aggregated.info"])
    parts = [part for span in spans for part in plan.uncounted(span, ((2, 5),))]
    frame = source.load(made.driver.url).read(spark, parts)
    assert frame.count() == plan.records(parts) == len(sent) + 30 - 9
    made.transport.cleanup()


def properties(text: str, *, ini: str = "") -> dict[str, str]:
    conf = rig.conf(ini)
    return kafka_source.properties(TransportURL.parse(conf, text))


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
