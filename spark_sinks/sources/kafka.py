"""Kafka through Spark's own connector: on the JVM, every partition at once."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from pyspark.sql import DataFrame, SparkSession

from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Span
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError
from notifier_kafka.jvm import jars
from spark_sinks.sources.source import Fetch

PORT = 9092

_GROUP = "drivers_kafka"
_OPTIONS = "oslo.config.opts", "notifier_kafka.drivers.kafka"
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# What users may set by client_properties, and Java has no such name for or Spark its own mind.
_NOT_JAVA = ("ssl.ca.", "ssl.certificate.", "ssl.key.", "ssl.crl.", "sasl.username", "sasl.password")
_SPARKS = ("group.", "auto.offset.reset", "enable.auto.commit", "key.deserializer", "value.deserializer")


class ByConnector:
    """Reads the spans of a batch, with the options of the driver's ``[drivers_kafka]``."""

    def __init__(self, url: DriverURL) -> None:
        self._properties = properties(url)

    def jars(self, fetch: Fetch) -> Sequence[Path]:
        return fetch(jars.spark_kafka())

    def read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        frames = [self._read(spark, layer) for layer in _layers(spans)]
        whole = frames[0]
        for other in frames[1:]:
            whole = whole.unionByName(other)
        return whole

    def _read(self, spark: SparkSession, spans: Sequence[Span]) -> DataFrame:
        starts: dict[str, dict[str, int]] = defaultdict(dict)
        stops: dict[str, dict[str, int]] = defaultdict(dict)
        for (topic, number), start, stop in spans:
            starts[topic][str(number)], stops[topic][str(number)] = start, stop
        assigned = {topic: [int(number) for number in found] for topic, found in starts.items()}
        reader = spark.read.format("kafka").options(**{f"kafka.{n}": v for n, v in self._properties.items()})
        reader = reader.option("assign", json.dumps(assigned)).option("includeHeaders", "true")
        reader = reader.option("startingOffsets", json.dumps(starts)).option(
            "endingOffsets", json.dumps(stops)
        )
        columns = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        return reader.load().select(*columns)


def _layers(spans: Sequence[Span]) -> list[list[Span]]:
    """Split spans such that no partition is twice in a list: a read has one range for each."""
    layers: dict[int, list[Span]] = defaultdict(list)
    seen: Counter[object] = Counter()
    for span in spans:
        layers[seen[span.partition]].append(span)
        seen[span.partition] += 1
    return list(layers.values())


def properties(url: DriverURL) -> dict[str, str]:
    """Spell the driver's options as Java's client has them."""
    settings = _settings(url)
    hosts = [(host.hostname or "localhost", host.port or PORT) for host in url.hosts] or [("localhost", PORT)]
    login = next((host for host in url.hosts if host.username is not None), None)
    protocol = settings.security_protocol
    if login is not None and not protocol.startswith("SASL"):
        protocol = {"PLAINTEXT": "SASL_PLAINTEXT", "SSL": "SASL_SSL"}[protocol]
    made = {
        "bootstrap.servers": ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in hosts),
        "security.protocol": protocol,
        "isolation.level": settings.isolation_level,
        # A range that ends where the log does need not wait for more.
        "fetch.max.wait.ms": "20",
    }
    if protocol.startswith("SASL"):
        user, password = (
            (login.username, login.password) if login else (settings.sasl_username, settings.sasl_password)
        )
        made |= _login(settings.sasl_mechanism, user, password)
    if protocol.endswith("SSL"):
        made |= _certificates(settings)
    for name, value in settings.client_properties.items():
        if not name.startswith(_NOT_JAVA + _SPARKS):
            made[name] = value
    return made


def _settings(url: DriverURL) -> SimpleNamespace:
    # By entry point: this room may not import the driver.
    listed = dict(plugins.load(*_OPTIONS)())
    return url.settings(_GROUP, listed[_GROUP])


def _login(mechanism: str, user: str | None, password: str | None) -> dict[str, str]:
    if not user:
        raise ConfigurationError("[drivers_kafka] sasl_username: the security protocol needs a user")
    module = f"{_LOGINS[mechanism]} required username={_quote(user)} password={_quote(password or '')};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": module}


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _certificates(settings: SimpleNamespace) -> dict[str, str]:
    made = {"ssl.endpoint.identification.algorithm": "https" if settings.ssl_check_hostname else ""}
    if settings.ssl_cafile:
        made |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(settings.ssl_cafile)}
    if settings.ssl_client_cert_file:
        made |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _pem(settings.ssl_client_cert_file),
            "ssl.keystore.key": _pem(settings.ssl_client_key_file or settings.ssl_client_cert_file),
        }
    if settings.ssl_client_key_password:
        made["ssl.key.password"] = settings.ssl_client_key_password
    return made


def _pem(file: str) -> str:
    try:
        return Path(file).read_text("ascii")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"[drivers_kafka] certificate {file} cannot be read: {error}") from error
