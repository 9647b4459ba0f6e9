"""The JSON configuration of the plain bytes client, and the transport URL that says the same.

Property names are those of Apache Kafka's Java client; where that has none of its own for
PEM files and a login, librdkafka's are taken as well.
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
    """Turn Kafka's milliseconds into the seconds that options have."""
    try:
        return repr(float(milliseconds) / 1000)
    except ValueError:
        # Perhaps the login, in the wrong place.
        raise ConfigurationError(f"{mask_text(milliseconds)!r} is no number of milliseconds") from None


def _acks(value: str) -> str:
    return "all" if value == "-1" else value


def _verifies(value: str) -> str:
    return "true" if value else "false"  # as Java has it: an empty text asks for no check


# What stands behind a property: an option of the driver, or None where the client libraries
# know it by this very name.
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
# What the client itself acts upon.
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
_IN_A_FILE = re.compile(r"sqlite:(?!//|\d+(?:,|$))")  # and not at a port of a host of that name


def _no_objects(value: str) -> None:
    if not _SERIALIZERS.fullmatch(value):
        raise ConfigurationError(f"only bytes and strings are sent and polled, which {value} is not for")


def _range(value: str) -> None:
    if value.rpartition(".")[2] != "RangeAssignor":
        raise ConfigurationError(f"partitions are shared out by RangeAssignor, not by {value}")


# What configurations of Java programs hold, and what has no effect here.
_IDLE: dict[str, dict[str, Callable[[str], object]]] = {
    PRODUCER: {
        "key.serializer": _no_objects,
        "max.block.ms": seconds,  # no send waits for a topic or for room
        "value.serializer": _no_objects,
    },
    CONSUMER: {
        "auto.commit.interval.ms": seconds,  # as soon as the next poll
        "default.api.timeout.ms": seconds,  # each call has its own
        "key.deserializer": _no_objects,
        "partition.assignment.strategy": _range,
        "value.deserializer": _no_objects,
    },
}
_FILES = "write the PEM text into a file, and name that"
# What Java knows, and what must not be passed over in silence.
_UNSUPPORTED = {
    "partitioner.class": "what is sent has no key, and goes to any partition",
    "ssl.keystore.certificate.chain": f"{_FILES} in ssl.keystore.location",
    "ssl.keystore.key": f"{_FILES} in ssl.keystore.location",
    "ssl.keystore.password": "a PEM file has none; that of the key in it is ssl.key.password",
    "ssl.truststore.certificates": f"{_FILES} in ssl.truststore.location",
    "ssl.truststore.password": "a PEM file has none",
    "transactional.id": "transactions are a notifier's, notifier.transaction()",
}
_LOGIN = re.compile(r'\b(username|password)\s*=\s*"([^"]*)"')
_STORE_TYPES = ("ssl.keystore.type", "ssl.truststore.type")


def read(config: str, kind: str) -> dict[str, str]:
    """Take the configuration apart, as text: JSON has numbers and booleans where Java has text."""
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
    properties = _spelled(properties)
    _refuse_unknown(properties, kind)
    return _without_idle(properties, kind)


def _without_idle(properties: dict[str, str], kind: str) -> dict[str, str]:
    for name, check in _IDLE[kind].items():
        try:
            if name in properties:
                check(properties.pop(name))
        except ConfigurationError as error:
            raise ConfigurationError(f"property {name}: {error}") from None
    return properties


def _spelled(properties: dict[str, str]) -> dict[str, str]:
    """Bring what only Java spells its way to the names that both client libraries know."""
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
    """Make the transport URL that says what the properties say; they win over its own query."""
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
        # What only concerns Kafka was checked, and another log has no option for it.
        return text
    return address + ("?" + parse.urlencode(query) if query else "")


def _address(servers: str) -> str:
    if _IN_A_FILE.match(servers):
        return servers.replace("sqlite:", "sqlite:///", 1)
    if servers.startswith("sqlite://"):
        return servers  # where a path may have spaces
    servers = servers.replace(" ", "")
    return servers if "://" in servers else f"kafka://{servers}/"


def known(kind: str) -> set[str]:
    """List the properties of a type of client."""
    return _PASSED_ON[kind].keys() | _OWN[kind] | _IDLE[kind].keys()


def _refuse_unknown(names: Iterable[str], kind: str) -> None:
    right = sorted(known(kind))
    for name in names:
        if name in _UNSUPPORTED:
            raise ConfigurationError(f"property {name} is not supported: {_UNSUPPORTED[name]}")
        if name not in right:
            hint = did_you_mean.hint(name, right, f"a {kind} knows {', '.join(right)}")
            raise ConfigurationError(f"unknown property {name!r}: {hint}")
