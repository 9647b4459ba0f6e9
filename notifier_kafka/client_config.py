"""The JSON configuration of the plain bytes client, and the transport URL that says the same.

Property names are those of Apache Kafka's Java client; where that has none of its own for
PEM files and a login, librdkafka's are taken as well.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from urllib import parse

from notifier_kafka.errors import ConfigurationError


def seconds(milliseconds: str) -> str:
    """Turn Kafka's milliseconds into the seconds that options have."""
    try:
        return repr(float(milliseconds) / 1000)
    except ValueError:
        raise ConfigurationError(f"{milliseconds!r} is no number of milliseconds") from None


# Properties with a meaning to the driver's options; all others are the client library's.
_OPTIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    "acks": ("acks", lambda value: "all" if value == "-1" else value),
    "batch.size": ("batch_size", str),
    "client.id": ("client_id", str),
    "compression.type": ("compression", str),
    "delivery.timeout.ms": ("delivery_timeout", seconds),
    "enable.idempotence": ("idempotence", str),
    "group.instance.id": ("group_instance_id", str),
    "group.protocol": ("group_protocol", str),
    "isolation.level": ("isolation_level", str),
    "linger.ms": ("linger", seconds),
    "max.partition.fetch.bytes": ("max_fetch_bytes", str),
    "max.poll.interval.ms": ("poll_interval", seconds),
    "max.request.size": ("max_request_size", str),
    "sasl.mechanism": ("sasl_mechanism", str),
    "sasl.password": ("sasl_password", str),
    "sasl.username": ("sasl_username", str),
    "security.protocol": ("security_protocol", str),
    "session.timeout.ms": ("session_timeout", seconds),
    "ssl.ca.location": ("ssl_cafile", str),
    "ssl.certificate.location": ("ssl_client_cert_file", str),
    "ssl.key.location": ("ssl_client_key_file", str),
    "ssl.key.password": ("ssl_client_key_password", str),
    "ssl.keystore.location": ("ssl_client_cert_file", str),
    "ssl.truststore.location": ("ssl_cafile", str),
}
_LOGIN = re.compile(r'\b(username|password)\s*=\s*"([^"]*)"')
_STORE_TYPES = ("ssl.keystore.type", "ssl.truststore.type")


def read(config: str, kind: str) -> dict[str, str]:
    """Take the configuration apart, as text: JSON has numbers and booleans where Java has text."""
    try:
        parsed = json.loads(config)
    except ValueError as error:
        raise ConfigurationError(f"the client's configuration is no JSON: {error}") from None
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
    return _spelled(properties)


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


def url(properties: Mapping[str, str], own: Collection[str]) -> str:
    """Make the transport URL that says what the properties say."""
    servers = properties.get("bootstrap.servers")
    if not servers:
        raise ConfigurationError('property "bootstrap.servers" is needed')
    text = servers if "://" in servers else f"kafka://{servers}/"
    query, others = {}, {}
    for name, value in properties.items():
        if name in _OPTIONS:
            option, convert = _OPTIONS[name]
            query[option] = convert(value)
        elif name not in own:
            others[name] = value
    if not text.startswith("kafka:"):
        # Another log has no client library: what only concerns one is checked and left out.
        _refuse_unknown(others, own)
        return text
    if others:
        query["client_properties"] = ",".join(f"{name}:{value}" for name, value in others.items())
    return text + ("?" + parse.urlencode(query) if query else "")


def _refuse_unknown(names: Mapping[str, str], own: Collection[str]) -> None:
    known = [*_OPTIONS, *own]
    for name in names:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
        raise ConfigurationError(f"unknown property {name!r}: {hint}")
