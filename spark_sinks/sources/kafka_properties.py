"""The Kafka driver's options as properties of the Java client. Imports no pyspark."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notifier_kafka.contract import plugins
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError

DEFAULT_PORT = 9092

_GROUP = "drivers_kafka"
_OPTIONS_ENTRY_POINT = "oslo.config.opts", "notifier_kafka.drivers.kafka"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Users may set these by client_properties, but Java has other names for the first, and Spark sets the second.
_NOT_IN_JAVA = ("ssl.ca.", "ssl.certificate.", "ssl.key.", "ssl.crl.", "sasl.username", "sasl.password")
_SET_BY_SPARK = (
    "group.",
    "auto.offset.reset",
    "enable.auto.commit",
    "key.deserializer",
    "value.deserializer",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class KafkaOptions:
    """The options of ``[drivers_kafka]`` that matter for reading."""

    security_protocol: str
    isolation_level: str
    sasl_mechanism: str
    sasl_username: str | None
    sasl_password: str | None
    ssl_cafile: str | None
    ssl_check_hostname: bool
    ssl_client_cert_file: str | None
    ssl_client_key_file: str | None
    ssl_client_key_password: str | None
    client_properties: Mapping[str, str]

    @classmethod
    def select(cls, **options: Any) -> "KafkaOptions":
        """Make it of all the driver's options, and ignore the others."""
        return cls(**{field.name: options[field.name] for field in dataclasses.fields(cls)})


def of_driver(url: DriverURL) -> dict[str, str]:
    """Translate the Kafka driver's options into properties of the Java client."""
    settings = _options(url)
    hosts = [(host.hostname or "localhost", host.port or DEFAULT_PORT) for host in url.hosts] or [
        ("localhost", DEFAULT_PORT)
    ]
    login = next((host for host in url.hosts if host.username is not None), None)
    protocol = settings.security_protocol
    if login is not None and not protocol.startswith("SASL"):
        protocol = {"PLAINTEXT": "SASL_PLAINTEXT", "SSL": "SASL_SSL"}[protocol]
    made = {
        "bootstrap.servers": ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in hosts),
        "security.protocol": protocol,
        "isolation.level": settings.isolation_level,
        # A range may end where the log ends: do not wait there for more records.
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
        if not name.startswith(_NOT_IN_JAVA + _SET_BY_SPARK):
            made[name] = value
    return made


def _options(url: DriverURL) -> KafkaOptions:
    # By entry point: Spark sinks do not import drivers.
    groups = dict(plugins.load(*_OPTIONS_ENTRY_POINT)())
    return url.settings(_GROUP, groups[_GROUP], KafkaOptions.select)


def _login(mechanism: str, user: str | None, password: str | None) -> dict[str, str]:
    if not user:
        raise ConfigurationError("[drivers_kafka] sasl_username: the security protocol needs a user")
    module = (
        f"{_LOGIN_MODULES[mechanism]} required username={_quote(user)} password={_quote(password or '')};"
    )
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": module}


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _certificates(settings: KafkaOptions) -> dict[str, str]:
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
