"""Properties, as Apache Kafka names them, made from our options; both clients are given these.

Where Java has no name for something (PEM files, user and password), librdkafka's is used.
"""

import math
from collections.abc import Iterable, Mapping

from notifier_kafka.contract import did_you_mean
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import ConfigurationError

from .settings import KafkaSettings

DEFAULT_PORT = 9092
REQUEST_TIMEOUT_SECONDS = 5.0  # for one call to a broker that cannot be reached
METADATA_AGE_SECONDS = 3.0  # until a member sees a new topic or partition
HEARTBEAT_SECONDS = 3.0
FETCH_BYTES = 50 * 1024 * 1024  # the default of Java's clients and of both of ours
BATCH_OVERHEAD_BYTES = 64 * 1024  # around the bytes of a record: lengths of headers, the batch

NAMES = frozenset(
    """
    acks allow.auto.create.topics auto.offset.reset batch.size bootstrap.servers check.crcs client.dns.lookup
    client.id client.rack compression.type connections.max.idle.ms delivery.timeout.ms enable.auto.commit
    enable.idempotence fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms isolation.level linger.ms
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.request.size
    metadata.max.age.ms partition.assignment.strategy partitioner receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.ms
    sasl.kerberos.service.name sasl.mechanism sasl.password sasl.username security.protocol
    send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.ms ssl.ca.location
    ssl.certificate.location ssl.cipher.suites ssl.crl.location ssl.endpoint.identification.algorithm
    ssl.key.location ssl.key.password transaction.timeout.ms transactional.id
    """.split()  # noqa: SIM905 - a list of names to read, not of strings
)
"""What ``client_properties`` may set; a client may have more."""

Properties = dict[str, str]


def servers(url: DriverURL) -> list[tuple[str, int]]:
    """List where the brokers are."""
    hosts = [(host.hostname or "localhost", host.port or DEFAULT_PORT) for host in url.hosts]
    return hosts or [("localhost", DEFAULT_PORT)]


def addresses(given: Mapping[str, str]) -> list[tuple[str, int]]:
    """Split ``bootstrap.servers`` into addresses."""
    parts = [text.rpartition(":") for text in given["bootstrap.servers"].split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in parts]


def spell(host: str, port: int) -> str:
    """Spell an address as ``host:port``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def common(url: DriverURL, settings: KafkaSettings) -> Properties:
    """Make the properties of every connection; ``client_properties`` win."""
    made = {
        "bootstrap.servers": ",".join(spell(*address) for address in servers(url)),
        "client.id": settings.client_id,
        **_security(url, settings),
    }
    return made | dict(settings.client_properties)


def publishing(settings: KafkaSettings, retry: int) -> Properties:
    """Make a publisher's properties. ``retry`` is that of ``Limits``; -1 is for ever."""
    retries = [number for number in (settings.retries, retry) if number is not None and number >= 0]
    idempotent = settings.idempotence and settings.acks == "all" and 0 not in retries
    made = {
        "acks": settings.acks,
        # Without retries there are no duplicates to recognise, and the clients refuse the combination.
        "enable.idempotence": "true" if idempotent else "false",
        # An idempotent producer keeps the order with five requests in flight, another only with one.
        "max.in.flight.requests.per.connection": "5" if idempotent else "1",
        "linger.ms": _ms(settings.linger),
        "batch.size": str(max(1, settings.batch_size)),
        "compression.type": settings.compression,
        "delivery.timeout.ms": _ms(settings.delivery_timeout),
        "max.request.size": str(settings.max_request_size + BATCH_OVERHEAD_BYTES),
    }
    if retries:
        made["retries"] = str(min(retries))
    return made | dict(settings.client_properties)


def longest_wait(given: Mapping[str, str]) -> float:
    """Return how many seconds a record may wait, by a publisher's properties; infinity for 0."""
    text = given["delivery.timeout.ms"]
    if not text.isdecimal():
        raise ConfigurationError(
            f"[drivers_kafka] client_properties: delivery.timeout.ms = {text!r}: it must be a number"
        )
    return int(text) / 1000 or math.inf


def transacting(settings: KafkaSettings, identity: str) -> Properties:
    """Make the properties of a producer of transactions, which needs idempotence and acks = all."""
    made = publishing(settings, -1)
    needed = {
        "acks": "all",
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "5",
        "transactional.id": identity,
        "transaction.timeout.ms": "60000",
        # Not longer than the transaction's timeout: librdkafka refuses that.
        "delivery.timeout.ms": _ms(min(settings.delivery_timeout, 55.0)),
    }
    made.pop("retries", None)
    return made | needed


def listening(settings: KafkaSettings, group: str) -> Properties:
    """Make the properties of a member of ``group``."""
    made = {
        **reading(settings),
        "group.id": group,
        "group.protocol": settings.group_protocol,
        "enable.auto.commit": "false",
        "metadata.max.age.ms": _ms(METADATA_AGE_SECONDS),
        "max.poll.interval.ms": _ms(max(settings.poll_interval, settings.session_timeout)),
    }
    if settings.group_protocol == "classic":
        # With KIP-848 the brokers decide these. cooperative-sticky was seen to stall.
        made["session.timeout.ms"] = _ms(settings.session_timeout)
        made["heartbeat.interval.ms"] = _ms(min(HEARTBEAT_SECONDS, settings.session_timeout / 3))
        made["partition.assignment.strategy"] = "range"
    if settings.group_instance_id:
        made["group.instance.id"] = settings.group_instance_id
    return made | dict(settings.client_properties)


def reading(settings: KafkaSettings) -> Properties:
    """Make the properties that every reader has."""
    made = {
        "auto.offset.reset": "earliest",
        "isolation.level": settings.isolation_level,
        "max.partition.fetch.bytes": str(settings.max_fetch_bytes),
        # With kafka-python this also limits what a compressed batch opens to.
        "fetch.max.bytes": str(max(FETCH_BYTES, settings.max_request_size + BATCH_OVERHEAD_BYTES)),
    }
    return made | dict(settings.client_properties)


def refuse_unknown(names: Iterable[str], known: Iterable[str] = NAMES) -> None:
    """Raise for the first unknown name, with the nearest known one."""
    choices = sorted(known)
    for name in names:
        if name not in choices:
            hint = did_you_mean.hint(name, choices, "see Apache Kafka's configuration reference")
            raise ConfigurationError(f"[drivers_kafka] client_properties: no property {name!r}: {hint}")


def _security(url: DriverURL, settings: KafkaSettings) -> Properties:
    login = next((host for host in url.hosts if host.username is not None), None)
    user = login.username if login else settings.sasl_username
    password = login.password if login else settings.sasl_password
    protocol = settings.security_protocol
    if login is not None and not protocol.startswith("SASL"):
        # A login in the URL is meant to be used, so the connection has to be one with a login.
        protocol = {"PLAINTEXT": "SASL_PLAINTEXT", "SSL": "SASL_SSL"}[protocol]
    made = {"security.protocol": protocol}
    if protocol.startswith("SASL"):
        if not user:
            raise ConfigurationError(
                f"[drivers_kafka] security_protocol = {protocol} needs a user: "
                "give user:password in the transport URL or set sasl_username and sasl_password"
            )
        made |= {
            "sasl.mechanism": settings.sasl_mechanism,
            "sasl.username": user,
            "sasl.password": password or "",
        }
    if protocol.endswith("SSL"):
        files = {
            "ssl.ca.location": settings.ssl_cafile,
            "ssl.certificate.location": settings.ssl_client_cert_file,
            "ssl.key.location": settings.ssl_client_key_file,
            "ssl.key.password": settings.ssl_client_key_password,
        }
        made |= {name: value for name, value in files.items() if value}
        made["ssl.endpoint.identification.algorithm"] = "https" if settings.ssl_check_hostname else "none"
    return made


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
