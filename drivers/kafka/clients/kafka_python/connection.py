"""How kafka-python is told of properties and connects."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.serializer import Serializer
from kafka.structs import OffsetAndMetadata

from notifier_kafka.contract.driver import Positions
from notifier_kafka.errors import ConfigurationError

from ... import diagnosis, properties
from .errors import translate

NOTHING = object()
GRACE = 2.0  # seconds that closing gives what is on the wire
CONNECT_MS = 4_000  # less than the five seconds that a call may cost: then the reason is looked for
REQUEST_MS = round(properties.REQUEST_TIMEOUT * 1000)

_SPELLED = {
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
# Objects there; its defaults (range, murmur2) are what we ask librdkafka for by name.
_CLASSES = {"partition.assignment.strategy", "partitioner"}


class Tombstones(Serializer):  # type: ignore[misc]
    """Lets a tombstone without a key through: ``send`` refuses two Nones, the brokers do not."""

    def serialize(self, _topic: str, _headers: object, data: object) -> object:
        return None if data is NOTHING else data


class ClosedOnFailure(KafkaNetSocket):  # type: ignore[misc]
    """Closes a socket whose connection failed, which the library leaves to the garbage collector.

    Classes of sockets are chosen by the scheme of a proxy; with this one there is none.
    """

    SCHEMES = ("direct",)

    async def sock_connect(self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class Connections(KafkaConnectionManager):  # type: ignore[misc]
    """Remembers why a connection failed: what waits for one is told only that time is over."""

    refusal: BaseException | None = None

    def get_connection(self, *args: Any, **kwargs: Any) -> Any:
        made = super().get_connection(*args, **kwargs)
        made.init_future.add_errback(self._note)
        return made

    async def _build_transport(self, *args: Any, **kwargs: Any) -> Any:
        """Let the last answer be heard: the library drops what comes together with the end.

        A broker that refuses a login says why and hangs up in one breath.
        """
        transport = await super()._build_transport(*args, **kwargs)
        receive = transport._sock_recv  # noqa: SLF001

        def received() -> tuple[bytes, BaseException | None]:
            data, error = receive()
            return data, None if data else error  # which comes again with the next look

        transport._sock_recv = received  # noqa: SLF001
        return transport

    def _note(self, error: BaseException) -> None:
        # The try that our own timeout ends is no answer, and must not hide the one before.
        if isinstance(error, kafka_errors.BrokerResponseError) and not error.retriable:
            self.refusal = error


def connect(kind: Callable[..., Any], given: Mapping[str, str], **own: Any) -> Any:
    """Make a producer, consumer or admin client. Blocks; says why when it fails."""
    made: list[Any] = []
    connections: list[Connections] = []

    def net_client(**configs: Any) -> Any:
        loop = NetworkSelector(**configs)
        connections.append(Connections(loop, **configs))
        # Its allow_auto_create_topics does not reach the part that asks for metadata.
        wanted = config.get("allow_auto_create_topics", False)
        connections[0].cluster.config["allow_auto_create_topics"] = wanted
        made.append(KafkaNetClient(loop, connections[0], **configs))
        return made[0]

    config = {
        "proxy_url": f"{ClosedOnFailure.SCHEMES[0]}://",
        **spelled(kind, given),
        "bootstrap_timeout_ms": CONNECT_MS,
        "kafka_client": net_client,
    }
    try:
        return kind(**{**config, **own})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is translated
        # A constructor that fails leaves its thread and sockets behind.
        for one in made:
            _close(one)
        refusal = connections[0].refusal if connections else None
        if refusal is not None:
            raise translate(refusal, "no broker lets us in") from None
        if isinstance(error, kafka_errors.KafkaTimeoutError):
            raise diagnosis.unreached(given) from None
        raise translate(error, "no broker is reached") from None


def _close(one: Any) -> None:
    """Close a client, also one whose thread could not begin, as at an interpreter's exit."""
    loop = one._net  # noqa: SLF001
    if loop._io_thread is not None and loop._io_thread.ident is None:  # noqa: SLF001
        loop._io_thread = None  # noqa: SLF001
    one.close()


def connected(consumer: Any) -> bool:
    """Tell whether a consumer has a connection that works; its metrics count tries as well."""
    manager = consumer._client._manager  # noqa: SLF001
    return any(one.connected for one in list(manager._conns.values()))  # noqa: SLF001


def spelled(kind: Any, given: Mapping[str, str]) -> dict[str, Any]:
    """Spell properties as kafka-python does, without those that ``kind`` does not have."""
    defaults = kind.DEFAULT_CONFIG
    named = {
        _SPELLED.get(name, name.replace(".", "_")): value
        for name, value in given.items()
        if name not in _CLASSES
    }
    return {name: _value(name, value, defaults[name]) for name, value in named.items() if name in defaults}


def refuse_unknown(given: Mapping[str, str]) -> None:
    """Raise for a property that none of kafka-python's clients has."""
    kinds = (KafkaProducer, KafkaConsumer, KafkaAdminClient)
    own = {name.replace("_", ".") for kind in kinds for name in kind.DEFAULT_CONFIG}
    known = own - _CLASSES | _SPELLED.keys()
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
    # client_properties bring text; numbers are numbers here, also where there is no default.
    if value.lstrip("-").isdigit() and not isinstance(default, str):
        return int(value)
    if isinstance(default, int | float) and value not in ("all",):
        name = name.replace("_", ".")
        raise ConfigurationError(f"[drivers_kafka] client_properties: {name} = {value!r}: it is a number")
    return value


def discard(producer: Any) -> None:
    """Close a producer, whatever it still has to send."""
    try:
        producer.close(timeout=GRACE)
    except kafka_errors.KafkaTimeoutError:
        # It stops half-way then: its thread goes on, and its destructor would try again.
        producer._sender.force_close()  # noqa: SLF001
        producer._closed = True  # noqa: SLF001


def told(positions: Positions) -> dict[TopicPartition, OffsetAndMetadata]:
    """Spell positions as kafka-python does."""
    return {TopicPartition(*p): OffsetAndMetadata(offset, "", -1) for p, offset in positions.items()}
