"""Properties as kafka-python spells them, and connecting."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.serializer import Serializer
from kafka.structs import OffsetAndMetadata

from notifier_kafka.contract.driver import Positions
from notifier_kafka.errors import ConfigurationError

from ... import diagnosis, properties
from .errors import translate
from .patches import failed_sockets
from .patches.decompression_limit import set_limit
from .patches.login_refusals import NetClients
from .patches.unfinished_close import close_net_client, close_producer

NO_VALUE = object()
CLOSE_TIMEOUT_SECONDS = 2.0  # for requests under way
CONNECT_TIMEOUT_MS = 4_000  # less than the five seconds that a call may take: then the reason is looked for
REQUEST_TIMEOUT_MS = round(properties.REQUEST_TIMEOUT_SECONDS * 1000)

_SPELLINGS = {
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.cipher.suites": "ssl_ciphers",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
# These are objects there; its defaults (range, murmur2) are what we ask librdkafka for by name.
_OBJECTS = {"partition.assignment.strategy", "partitioner"}


class TombstoneSerializer(Serializer):  # type: ignore[misc]
    """Lets a tombstone without a key through: ``send`` refuses two Nones, the brokers do not."""

    def serialize(self, _topic: str, _headers: object, data: object) -> object:
        return None if data is NO_VALUE else data


def connect(kind: Callable[..., Any], given: Mapping[str, str], **own: Any) -> Any:
    """Make a producer, consumer or admin client. Blocks; says why when it fails."""
    config = {
        "proxy_url": failed_sockets.PROXY_URL,
        **spell_properties(kind, given),
        "bootstrap_timeout_ms": CONNECT_TIMEOUT_MS,
    }
    net_clients = NetClients(create_topics=config.get("allow_auto_create_topics", False))
    try:
        return kind(**{**config, "kafka_client": net_clients, **own})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is translated
        # A constructor that fails leaves its thread and sockets behind.
        if net_clients.client is not None:
            close_net_client(net_clients.client)
        if net_clients.refusal is not None:
            raise translate(net_clients.refusal, "every broker refuses the connection") from None
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            raise diagnosis.unreached(given) from None
        raise translate(error, "no broker is reached") from None


def connect_producer(given: Mapping[str, str]) -> Any:
    """Make a producer. Blocks."""
    own = {"max_block_ms": CONNECT_TIMEOUT_MS, "value_serializer": TombstoneSerializer()}
    return connect(KafkaProducer, given, **own)


def connect_consumer(given: Mapping[str, str], **own: Any) -> Any:
    """Make a consumer that opens no batch to more than ``fetch.max.bytes``. Blocks."""
    consumer = connect(KafkaConsumer, given, **own)
    set_limit(consumer, consumer.config["fetch_max_bytes"])
    return consumer


def spell_properties(kind: Any, given: Mapping[str, str]) -> dict[str, Any]:
    """Spell properties as kafka-python does, without those that ``kind`` does not have."""
    defaults = kind.DEFAULT_CONFIG
    named = {
        _SPELLINGS.get(name, name.replace(".", "_")): value
        for name, value in given.items()
        if name not in _OBJECTS
    }
    return {name: _value(name, value, defaults[name]) for name, value in named.items() if name in defaults}


def refuse_unknown(given: Mapping[str, str]) -> None:
    """Raise for a property that none of kafka-python's clients has."""
    kinds = (KafkaProducer, KafkaConsumer, KafkaAdminClient)
    own = {name.replace("_", ".") for kind in kinds for name in kind.DEFAULT_CONFIG}
    known = own - _OBJECTS | _SPELLINGS.keys()
    for name in given:
        if name in properties.NAMES - known:
            raise ConfigurationError(
                f"[drivers_kafka] client_properties: kafka-python has no {name}: leave it out or "
                "install notifier-kafka[confluent] and set [drivers_kafka] client = confluent-kafka"
            )
    properties.refuse_unknown(given, known)


def _value(name: str, value: str, default: object) -> Any:
    if name == "ssl_check_hostname":
        return value != "none"
    if value == "none" and name == "compression_type":
        return None
    if isinstance(default, bool):
        return value.lower() == "true"
    # client_properties are text; here a number is a number, also where there is no default.
    if value.lstrip("-").isdigit() and not isinstance(default, str):
        return int(value)
    if isinstance(default, int | float) and value not in ("all",):
        name = name.replace("_", ".")
        raise ConfigurationError(
            f"[drivers_kafka] client_properties: {name} = {value!r}: it must be a number"
        )
    return value


def discard(producer: Any) -> None:
    """Close a producer, whatever it still has to send."""
    close_producer(producer, CLOSE_TIMEOUT_SECONDS)


def spell_positions(positions: Positions) -> dict[TopicPartition, OffsetAndMetadata]:
    """Spell positions as kafka-python does."""
    return {TopicPartition(*p): OffsetAndMetadata(offset, "", -1) for p, offset in positions.items()}
