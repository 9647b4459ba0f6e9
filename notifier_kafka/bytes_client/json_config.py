"""Reads the JSON configuration of the plain bytes client and makes a transport URL of it.

The property names are those of Apache Kafka's Java client, and librdkafka's for PEM files and
a login, for which Java has none.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from urllib import parse

from notifier_kafka.contract import did_you_mean
from notifier_kafka.contract.secret_masking import mask_text
from notifier_kafka.errors import ConfigurationError

PRODUCER = "KafkaProducerConfig"
CONSUMER = "KafkaConsumerConfig"


def seconds(milliseconds: str) -> str:
    """Convert Kafka's milliseconds to the seconds that options have."""
    try:
        return repr(float(milliseconds) / 1000)
    except ValueError:
        # Masked: it may be the login, in the wrong place.
        raise ConfigurationError(f"{mask_text(milliseconds)!r} is not a number of milliseconds") from None


def _acks(value: str) -> str:
    return "all" if value == "-1" else value


def _verifies(value: str) -> str:
    return "true" if value else "false"  # in Java, an empty text turns the check off


# The driver's option for a property and its conversion, or None if the client libraries have a
# property of the same name.
_Option = tuple[str, Callable[[str], str]]
_COMMON: dict[str, _Option | None] = {
    "client.dns.lookup": None,
    "client.id": ("client_id", str),
    "client.rack": None,
    "connections.max.idle.ms": None,
    "metadata.max.age.ms": None,
    "receive.buffer.bytes": None,
    "reconnect.backoff.max.ms": None,
    "reconnect.backoff.ms": None,
    "request.timeout.ms": None,
    "retry.backoff.ms": None,
    "sasl.mechanism": ("sasl_mechanism", str),
    "sasl.password": ("sasl_password", str),
    "sasl.username": ("sasl_username", str),
    "security.protocol": ("security_protocol", str),
    "send.buffer.bytes": None,
    "ssl.ca.location": ("ssl_cafile", str),
    "ssl.certificate.location": ("ssl_client_cert_file", str),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _verifies),
    "ssl.key.location": ("ssl_client_key_file", str),
    "ssl.key.password": ("ssl_client_key_password", str),
    "ssl.keystore.location": ("ssl_client_cert_file", str),
    "ssl.truststore.location": ("ssl_cafile", str),
}
_PRODUCER: dict[str, _Option | None] = _COMMON | {
    "acks": ("acks", _acks),
    "batch.size": ("batch_size", str),
    "compression.type": ("compression", str),
    "delivery.timeout.ms": ("delivery_timeout", seconds),
    "enable.idempotence": ("idempotence", str),
    "linger.ms": ("linger", seconds),
    "max.in.flight.requests.per.connection": None,
    "max.request.size": ("max_request_size", str),
}
_CONSUMER: dict[str, _Option | None] = _COMMON | {
    "check.crcs": None,
    "fetch.max.bytes": None,
    "fetch.max.wait.ms": None,
    "fetch.min.bytes": None,
    "group.instance.id": ("group_instance_id", str),
    "group.protocol": ("group_protocol", str),
    "heartbeat.interval.ms": None,
    "isolation.level": ("isolation_level", str),
    "max.partition.fetch.bytes": ("max_fetch_bytes", str),
    "max.poll.interval.ms": ("poll_interval", seconds),
    "session.timeout.ms": ("session_timeout", seconds),
}
_PASSED_ON = {PRODUCER: _PRODUCER, CONSUMER: _CONSUMER}
# Properties that this client itself uses.
_OWN = {
    PRODUCER: {"bootstrap.servers", "buffer.memory", "producer.type", "retries"},
    CONSUMER: {
        "bootstrap.servers",
        "group.id",
        "auto.offset.reset",
        "enable.auto.commit",
        "max.poll.records",
    },
}
_SERIALIZERS = re.compile(
    r"(?:org\.apache\.kafka\.common\.serialization\.)?(?:ByteArray|String)(?:S|Des)erializer"
)
_SQLITE_FILE = re.compile(r"sqlite:(?!//|\d+(?:,|$))")  # but not a port of a host called sqlite


def _no_objects(value: str) -> None:
    if not _SERIALIZERS.fullmatch(value):
        raise ConfigurationError(f"only bytes and strings can be sent and polled, not objects of {value}")


def _range_only(value: str) -> None:
    if value.rpartition(".")[2] != "RangeAssignor":
        raise ConfigurationError(f"partitions are assigned by RangeAssignor, not by {value}")


# Properties of Java programs that are accepted without an effect, and how they are checked.
_WITHOUT_EFFECT: dict[str, dict[str, Callable[[str], object]]] = {
    PRODUCER: {
        "key.serializer": _no_objects,
        "max.block.ms": seconds,  # no send waits for metadata or for room
        "value.serializer": _no_objects,
    },
    CONSUMER: {
        "auto.commit.interval.ms": seconds,  # the next poll commits
        "default.api.timeout.ms": seconds,  # each call has its own timeout
        "key.deserializer": _no_objects,
        "partition.assignment.strategy": _range_only,
        "value.deserializer": _no_objects,
    },
}
_USE_A_FILE = "write the PEM text to a file, and name the file"
# Java's properties that must not be ignored silently, and what to do instead.
_UNSUPPORTED = {
    "partitioner.class": "records are sent without a key, to any partition",
    "ssl.keystore.certificate.chain": f"{_USE_A_FILE} in ssl.keystore.location",
    "ssl.keystore.key": f"{_USE_A_FILE} in ssl.keystore.location",
    "ssl.keystore.password": "a PEM file has no password; for that of the key in it, use ssl.key.password",
    "ssl.truststore.certificates": f"{_USE_A_FILE} in ssl.truststore.location",
    "ssl.truststore.password": "a PEM file has no password",
    "transactional.id": "only notifiers have transactions: notifier.transaction()",
}
_LOGIN = re.compile(r'\b(username|password)\s*=\s*"([^"]*)"')
_STORE_TYPES = ("ssl.keystore.type", "ssl.truststore.type")


def read(config: str, kind: str) -> dict[str, str]:
    """Return the properties as text, as Java has them; in JSON they may be numbers and booleans."""
    try:
        parsed = json.loads(config)
        json.dumps(parsed, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    except UnicodeError:
        raise ConfigurationError("the client's configuration is not Unicode text") from None
    except ValueError as error:
        raise ConfigurationError(f"the client's configuration is not JSON: {error}") from None
    except RecursionError:
        raise ConfigurationError("the client's configuration is nested too deeply") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("Properties"), dict):
        raise ConfigurationError('the client\'s configuration needs "Type" and "Properties"')
    if parsed.get("Type") != kind:
        raise ConfigurationError(f'the client\'s "Type" is {parsed.get("Type")!r}; {kind} is needed here')
    if unknown := sorted(parsed.keys() - {"Type", "Properties"}):
        raise ConfigurationError(f"the client's configuration has unknown members: {', '.join(unknown)}")
    properties = {}
    for name, value in parsed["Properties"].items():
        if not isinstance(value, str | int | float):
            raise ConfigurationError(f"property {name}: text, a number or a boolean is needed")
        properties[name] = json.dumps(value) if isinstance(value, bool) else str(value)
    properties = _renamed(properties)
    _refuse_unknown(properties, kind)
    return _without_unused(properties, kind)


def _without_unused(properties: dict[str, str], kind: str) -> dict[str, str]:
    for name, check in _WITHOUT_EFFECT[kind].items():
        try:
            if name in properties:
                check(properties.pop(name))
        except ConfigurationError as error:
            raise ConfigurationError(f"property {name}: {error}") from None
    return properties


def _renamed(properties: dict[str, str]) -> dict[str, str]:
    """Rename properties that only Java has to the names that both client libraries know."""
    jaas = properties.pop("sasl.jaas.config", None)
    if jaas is not None:
        login = dict(_LOGIN.findall(jaas))
        if login.keys() != {"username", "password"}:
            raise ConfigurationError(
                'property sasl.jaas.config: username="..." and password="..." are needed'
            )
        properties |= {f"sasl.{name}": value for name, value in login.items()}
    for name in _STORE_TYPES:
        if (kind := properties.pop(name, "PEM")).upper() != "PEM":
            raise ConfigurationError(f"property {name}: only PEM can be read, not {kind}")
    return properties


def url(properties: Mapping[str, str], kind: str) -> str:
    """Make the transport URL from the properties. They win over the URL's own query."""
    servers = properties.get("bootstrap.servers", "").strip()
    if not servers:
        raise ConfigurationError('property "bootstrap.servers" is needed')
    text = _address(servers)
    address, _, given = text.partition("?")
    query = dict(parse.parse_qsl(given, keep_blank_values=True))
    for name, value in properties.items():
        if name not in _PASSED_ON[kind]:
            continue
        meaning = _PASSED_ON[kind][name]
        if meaning is not None:
            option, convert = meaning
            query[option] = convert(value)
        else:
            if "," in value:
                raise ConfigurationError(f"property {name}: a comma in its value cannot be passed on")
            others = query.get("client_properties")
            query["client_properties"] = f"{others},{name}:{value}" if others else f"{name}:{value}"
    if not text.startswith("kafka:"):
        # Other logs have no options for Kafka's properties, which were checked above.
        return text
    return address + ("?" + parse.urlencode(query) if query else "")


def _address(servers: str) -> str:
    if _SQLITE_FILE.match(servers):
        return servers.replace("sqlite:", "sqlite:///", 1)
    if servers.startswith("sqlite://"):
        return servers  # with its spaces: a path may have some
    servers = servers.replace(" ", "")
    return servers if "://" in servers else f"kafka://{servers}/"


def known(kind: str) -> set[str]:
    """List the properties of a type of client."""
    return _PASSED_ON[kind].keys() | _OWN[kind] | _WITHOUT_EFFECT[kind].keys()


def _refuse_unknown(names: Iterable[str], kind: str) -> None:
    choices = sorted(known(kind))
    for name in names:
        if name in _UNSUPPORTED:
            raise ConfigurationError(f"property {name} is not supported: {_UNSUPPORTED[name]}")
        if name not in choices:
            hint = did_you_mean.hint(name, choices, f"a {kind} knows {', '.join(choices)}")
            raise ConfigurationError(f"unknown property {name!r}: {hint}")
