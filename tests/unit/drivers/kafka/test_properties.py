"""From options and URL to what the client libraries are told."""

import contextlib
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from oslo_config import cfg

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import (
    ConfigurationError,
    DeliveryFailed,
    DriverLoadFailure,
    DriverNotFound,
    MessagingException,
    TransportUnavailable,
)
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.kafka import diagnosis, naming, options, properties
from notifier_kafka_drivers.kafka.clients import loading
from notifier_kafka_drivers.kafka.clients.confluent.holdback import MUTE_SECONDS
from notifier_kafka_drivers.kafka.clients.kafka_python import connection, log
from notifier_kafka_drivers.kafka.driver import KafkaDriver

CLIENTS = ["confluent-kafka", "kafka-python"]


def url(text: str, **values: Any) -> TransportURL:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    conf.register_opts(options.OPTS, group=options.GROUP)
    for name, value in values.items():
        conf.set_override(name, value, group=options.GROUP)
    return TransportURL.parse(conf, text)


def common(text: str, **values: Any) -> dict[str, str]:
    parsed = url(text, **values)
    given: dict[str, str] = properties.common(parsed, parsed.settings(options.GROUP, options.OPTS))
    return given


def settings(**values: Any) -> Any:
    return url("kafka://h", **values).settings(options.GROUP, options.OPTS)


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("kafka://", "localhost:9092"),
        ("kafka://broker", "broker:9092"),
        ("kafka://a:1,b:2/vhost", "a:1,b:2"),
        ("kafka://u:p@a,u:p@b:2", "a:9092,b:2"),
        ("kafka://[::1]:5", "[::1]:5"),
    ],
)
def test_servers_are_those_of_the_url_with_kafka_s_port(text: str, servers: str) -> None:
    given = common(text)
    assert given["bootstrap.servers"] == servers
    assert properties.addresses(given) == properties.servers(url(text))


def test_a_login_in_the_url_is_used_also_where_no_protocol_is_configured() -> None:
    given = common("kafka://me:s%40crt@h", sasl_mechanism="SCRAM-SHA-512")
    assert given["security.protocol"] == "SASL_PLAINTEXT"
    assert (given["sasl.username"], given["sasl.password"]) == ("me", "s@crt")
    assert given["sasl.mechanism"] == "SCRAM-SHA-512"


def test_a_login_in_the_url_keeps_the_encryption() -> None:
    given = common("kafka://me:secret@h", security_protocol="SSL", ssl_cafile="/ca.pem")
    assert given["security.protocol"] == "SASL_SSL"
    assert given["ssl.ca.location"] == "/ca.pem"
    assert given["ssl.endpoint.identification.algorithm"] == "https"


def test_sasl_without_a_user_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a user"):
        common("kafka://h", security_protocol="SASL_SSL")


def test_host_names_are_checked_unless_told_otherwise() -> None:
    given = common("kafka://h", security_protocol="SSL", ssl_check_hostname=False)
    assert given["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("option", "value", "name", "expected"),
    [
        ("acks", "1", "acks", "1"),
        ("linger", 0.02, "linger.ms", "20"),
        ("batch_size", 4096, "batch.size", "4096"),
        ("compression", "gzip", "compression.type", "gzip"),
        ("delivery_timeout", 7.5, "delivery.timeout.ms", "7500"),
        ("max_request_size", 2_000_000, "max.request.size", str(2_000_000 + properties.BATCH_OVERHEAD_BYTES)),
        ("group_protocol", "consumer", "group.protocol", "consumer"),
        ("group_instance_id", "one", "group.instance.id", "one"),
        ("session_timeout", 9.0, "session.timeout.ms", "9000"),
        ("poll_interval", 100.0, "max.poll.interval.ms", "100000"),
        ("isolation_level", "read_uncommitted", "isolation.level", "read_uncommitted"),
        ("max_fetch_bytes", 4096, "max.partition.fetch.bytes", "4096"),
        ("client_id", "me", "client.id", "me"),
        ("ssl_cafile", "ca", "ssl.ca.location", "ca"),
        ("ssl_client_cert_file", "cert", "ssl.certificate.location", "cert"),
        ("ssl_client_key_file", "key", "ssl.key.location", "key"),
        ("ssl_client_key_password", "pass", "ssl.key.password", "pass"),
        ("sasl_mechanism", "PLAIN", "sasl.mechanism", "PLAIN"),
        ("sasl_password", "word", "sasl.password", "word"),
        ("sasl_username", "user", "sasl.username", "user"),
    ],
)
def test_each_option_is_a_property(option: str, value: Any, name: str, expected: str) -> None:
    told = {"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": "p", option: value}
    given = settings(**told)
    made = common("kafka://h", **told) | properties.publishing(given, 5) | properties.listening(given, "g")
    assert made[name] == expected


def test_client_properties_win() -> None:
    told = {"linger.ms": "7", "client.id": "mine"}
    assert common("kafka://h", client_properties=told)["client.id"] == "mine"
    assert properties.publishing(settings(client_properties=told), -1)["linger.ms"] == "7"


def test_client_properties_win_over_what_the_driver_gives_librdkafka() -> None:
    told = {
        "partitioner": "consistent",
        "allow.auto.create.topics": "true",
        "queue.buffering.max.messages": "7",
    }
    driver = KafkaDriver(url("kafka://127.0.0.1:1", client="confluent-kafka", client_properties=told))
    publisher: Any = driver.publisher(lambda *_: None, Limits())
    config = publisher._publisher._config
    assert {name: config[name] for name in told} == told
    # Numbers as text are numbers for those who count what waits.
    publisher._publisher._holdback.gather(MUTE_SECONDS + 1, 3)
    assert publisher._publisher._holdback._spare == 4
    driver.close()


def test_a_wrong_delivery_timeout_among_the_client_properties_is_told() -> None:
    driver = KafkaDriver(url("kafka://127.0.0.1:1", client_properties={"delivery.timeout.ms": "soon"}))
    with pytest.raises(ConfigurationError, match=r"delivery\.timeout\.ms = 'soon': it must be a number"):
        driver.publisher(lambda *_: None, Limits())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_that_is_not_seen_in_time_is_told(client: str) -> None:
    text = f"kafka://127.0.0.1:1?client={client}&delivery_timeout=1"
    driver = KafkaDriver(url(text))
    failed: list[tuple[bytes | None, str]] = []
    publisher = driver.publisher(
        lambda record, error: failed.append((record.value, str(error))), Limits(retry=100)
    )
    publisher.offer(Record("t", b"1"))
    assert publisher.flush(60.0) == 0
    assert [value for value, _ in failed] == [b"1"]
    assert "127.0.0.1:1" in failed[0][1]
    driver.close()


def test_what_waits_for_a_topic_without_a_thread_for_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = KafkaDriver(url("kafka://127.0.0.1:1", client="confluent-kafka"))
    failed: list[bytes | None] = []
    publisher = driver.publisher(lambda record, _: failed.append(record.value), Limits(retry=0))
    start = threading.Thread.start

    def full(thread: threading.Thread) -> None:
        if thread.name == "notifier-kafka-topics":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        with pytest.raises(DeliveryFailed, match="topic t: can't start new thread"):
            publisher.offer(Record("t", b"1"))
        assert publisher.flush(0.0) == 0
    publisher.offer(Record("t", b"2"))
    assert publisher.flush(60.0) == 0
    assert failed == [b"2"]
    driver.close()


@pytest.mark.parametrize(
    ("retry", "retries", "expected"),
    [(-1, None, None), (-1, 3, "3"), (5, None, "5"), (5, 3, "3"), (0, 3, "0")],
)
def test_the_smaller_number_of_retries_counts(retry: int, retries: int | None, expected: str | None) -> None:
    assert properties.publishing(settings(retries=retries), retry).get("retries") == expected


@pytest.mark.parametrize(
    ("values", "retry", "idempotent"),
    [
        ({}, -1, True),
        ({"acks": "1"}, -1, False),
        ({"idempotence": False}, -1, False),
        ({}, 0, False),
        ({"retries": 0}, -1, False),
        ({"retries": 0}, 3, False),
        ({"retries": 1}, 3, True),
    ],
)
def test_order_is_kept_with_and_without_idempotence(
    values: dict[str, Any], retry: int, idempotent: bool
) -> None:
    given = properties.publishing(settings(**values), retry)
    assert given["enable.idempotence"] == ("true" if idempotent else "false")
    assert given["max.in.flight.requests.per.connection"] == ("5" if idempotent else "1")


@pytest.mark.parametrize("client", CLIENTS)
def test_an_unknown_client_property_is_refused_with_the_nearest(client: str) -> None:
    driver = KafkaDriver(url("kafka://h", client=client, client_properties={"lingr.ms": "5"}))
    with pytest.raises(ConfigurationError, match=r"'lingr\.ms': did you mean linger\.ms\?"):
        driver.publisher(lambda *_: None, Limits())


@pytest.mark.parametrize(
    "name",
    [
        "partition.assignment.strategy",
        "partitioner",
        "group.protocol",
        "group.remote.assignor",
        "socket.connection.setup.timeout.ms",
    ],
)
def test_a_property_that_kafka_python_lacks_is_told_as_such(name: str) -> None:
    driver = KafkaDriver(url("kafka://h", client="kafka-python", client_properties={name: "5000"}))
    with pytest.raises(ConfigurationError, match=f"client_properties: kafka-python has no {name}: "):
        driver.publisher(lambda *_: None, Limits())


@pytest.mark.parametrize(
    ("name", "value"),
    [("socket.nagle.disable", "maybe"), ("statistics.interval.ms", "often"), ("debug", "x")],
)
def test_a_wrong_value_for_librdkafka_alone_is_told_as_such(name: str, value: str) -> None:
    driver = KafkaDriver(url("kafka://h", client="confluent-kafka", client_properties={name: value}))
    with pytest.raises(ConfigurationError, match=f'client_properties: .*value.* "{name}"') as caught:
        driver.publisher(lambda *_: None, Limits())
    assert "\n" not in str(caught.value)


def test_a_property_of_librdkafka_alone_is_taken_by_it() -> None:
    driver = KafkaDriver(
        url(
            "kafka://127.0.0.1:1",
            client="confluent-kafka",
            client_properties={"sticky.partitioning.linger.ms": "5"},
        )
    )
    driver.publisher(lambda *_: None, Limits()).close()
    driver.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_value_of_a_client_property_is_an_error_of_configuration(client: str) -> None:
    text = f"kafka://127.0.0.1:1?client={client}"
    driver = KafkaDriver(url(text, client_properties={"reconnect.backoff.ms": "soon"}))
    with pytest.raises(ConfigurationError, match=r"reconnect\.backoff\.ms"):
        driver.admin().list_topics()


def test_an_unknown_client_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(DriverNotFound, match="auto or one of confluent-kafka, kafka-python"):
        loading.load("librdkafka")


def test_auto_is_the_faster_client_where_it_is_installed() -> None:
    assert loading.load("auto").__name__ == "Confluent"


def test_a_client_library_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    monkeypatch.delitem(
        __import__("sys").modules, "notifier_kafka_drivers.kafka.clients.confluent.client", raising=False
    )
    with pytest.raises(DriverLoadFailure, match=r"pip install 'notifier-kafka\[confluent\]'"):
        loading.load("confluent-kafka")


def test_kafka_python_refuses_the_protocol_that_it_does_not_have() -> None:
    driver = KafkaDriver(url("kafka://127.0.0.1:1?client=kafka-python", group_protocol="consumer"))
    with pytest.raises(ConfigurationError, match=r"install notifier-kafka\[confluent\]"):
        driver.subscribe(["t"], "g", "earliest").poll(1, 5)
    driver.close()


def test_the_group_of_those_without_a_pool_and_the_virtual_host_are_told() -> None:
    driver = KafkaDriver(url("kafka://h/blue", consumer_group="billing"))
    assert (driver.virtual_host, driver.default_group) == ("blue", "billing")
    plain = KafkaDriver(url("kafka://h"))
    assert (plain.virtual_host, plain.default_group) == (None, None)


@pytest.mark.parametrize("name", ["a", "notifications.info", "A_b-1", "x" * 249, "..."])
def test_a_legal_name_of_a_topic(name: str) -> None:
    assert naming.complaint(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "topic\n", "größe", "x" * 250, "a\0"])
def test_an_illegal_name_of_a_topic(name: str) -> None:
    assert "1 to 249 of the characters" in str(naming.complaint(name))
    assert "\n" not in str(naming.complaint(name))


@pytest.mark.parametrize("client", CLIENTS)
def test_what_no_broker_would_take_is_refused_before_a_client_sees_it(client: str) -> None:
    driver = KafkaDriver(url(f"kafka://127.0.0.1:1?client={client}&max_request_size=1000"))
    publisher = driver.publisher(lambda *_: None, Limits(bytes=900))
    for record, words in [
        (Record("topic\n", b"x"), "1 to 249"),
        (Record("t", b"x" * 1001), "max_request_size"),
        (Record("t", b"x" * 950), "outbox_bytes"),
    ]:
        with pytest.raises(MessagingException, match=words):
            publisher.offer(record)
    driver.close()


def told(address: str) -> str:
    return str(diagnosis.unreached({"bootstrap.servers": address}))


def test_a_refused_connection_is_named_with_its_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert told(f"127.0.0.1:{port}") == f"no broker is reached: 127.0.0.1:{port}: connection refused"


def test_a_server_that_says_nothing_is_told_from_one_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert "does not answer" in told(f"127.0.0.1:{mute.getsockname()[1]}")


def test_several_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is let go before both have been asked."""
    monkeypatch.setattr(diagnosis, "STEP_TIMEOUT_SECONDS", 60.0)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        addresses = ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)
        with futures.ThreadPoolExecutor(1) as pool:
            said = pool.submit(told, addresses)
            with contextlib.ExitStack() as held:
                for server in servers:
                    server.settimeout(20)
                    held.enter_context(server.accept()[0])
            assert said.result().count("does not answer") == 2


@pytest.fixture
def no_threads() -> Iterator[None]:
    """Let none begin, as Python does at its exit: each is to have a stack that no process has room for."""
    before = threading.stack_size(1 << 48)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("no_threads")
def test_where_there_are_no_threads_they_are_asked_one_after_the_other() -> None:
    said = "127.0.0.1:1: connection refused; 127.0.0.1:2: connection refused"
    assert told("127.0.0.1:1,127.0.0.1:2") == f"no broker is reached: {said}"


@pytest.mark.usefixtures("no_threads")
def test_where_there_are_no_threads_kafka_python_may_be_tried_again() -> None:
    with pytest.raises(TransportUnavailable, match="can't start new thread"):
        connection.connect(KafkaAdminClient, {"bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_server_that_resets_connections_leaves_no_socket_open(protocol: str) -> None:
    """As a proxy with nobody behind it does. Python warns of each that is left, and pytest fails of that."""
    with socket.create_server(("127.0.0.1", 0)) as server, futures.ThreadPoolExecutor(1) as pool:
        given = {
            "bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}",
            "security.protocol": protocol,
        }
        for _ in range(20):  # in about every second the reset comes late
            resetting = pool.submit(_reset_the_next, server)
            said = str(diagnosis.unreached(given))
            assert "it hangs, or uses another" in said or "reset" in said or "security_protocol right" in said
            resetting.result()


def _reset_the_next(server: socket.socket) -> None:
    accepted, _ = server.accept()
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    accepted.close()


def test_a_host_name_that_nobody_knows_is_named() -> None:
    assert told("no-such-host.invalid:9092").endswith("no-such-host.invalid:9092: no such host name")


def test_a_tls_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.pem"):
        diagnosis.check_files({"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "nothing.pem")})


def test_certificates_are_verified_unless_told_otherwise() -> None:
    made = diagnosis.context({"ssl.endpoint.identification.algorithm": "https"})
    assert (made.verify_mode, made.check_hostname) == (ssl.CERT_REQUIRED, True)
    lax = diagnosis.context({"ssl.endpoint.identification.algorithm": "none"})
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_a_secret_is_masked_however_it_is_spelled() -> None:
    masked = log.SecretFilter()
    for secret in ("pass", "pass'wörd\n"):
        masked.add(secret)
    for shown in ("pass'wörd\n", {"login": "pass'wörd\n"}, "pass'wörd\n".encode()):
        record = logging.LogRecord("kafka", logging.DEBUG, "", 1, "sent %s", (shown,), None)
        assert masked.filter(record)
        assert "***" in record.getMessage()
        assert "rd" not in record.getMessage()
