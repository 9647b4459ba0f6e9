"""TLS, SASL and ACLs: what works, and the one clear error for each thing that is wrong."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import pytest
from kafka_rig import Connect, gather, publish, until

from notifier_kafka.driver import Limits, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka_drivers.kafka.cluster import Cluster
from notifier_kafka_drivers.kafka.credentials import CLIENT, Security
from notifier_kafka_drivers.kafka.driver import KafkaDriver

AT_ONCE = 10.0


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with TLS, SCRAM and ACLs; the user ``client`` may do nothing."""
    cluster = Cluster(
        tmp_path_factory.mktemp("secured"), security=Security(tls=True, sasl="scram", acls=True), leashed=True
    )
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def misnamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker whose certificate is for another host."""
    security = Security(tls=True, hosts=("elsewhere.example",))
    cluster = Cluster(tmp_path_factory.mktemp("misnamed"), security=security, leashed=True)
    cluster.start()
    yield cluster
    cluster.stop()


def list_topics(driver: KafkaDriver) -> None:
    driver.admin().list_topics()


def poll(driver: KafkaDriver) -> None:
    member = driver.subscribe(["topic"], "group", "earliest")
    deadline = time.monotonic() + AT_ONCE
    while time.monotonic() < deadline:
        member.poll(1, 0.5)


def send(driver: KafkaDriver) -> None:
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits(retry=0))
    publisher.offer(Record("topic", b"1"))
    publisher.flush(AT_ONCE)
    publisher.close()
    raise failures[0]


CALLS = [list_topics, poll, send]


def unreached(cluster: Cluster, why: str) -> str:
    return f"no broker is reached: {cluster.bootstrap}: {why}"


def complaint(driver: KafkaDriver, call: Callable[[KafkaDriver], None]) -> str:
    """Return the error of a call, which comes soon, in one line."""
    began = time.monotonic()
    with pytest.raises(MessagingException) as caught:
        call(driver)
    assert time.monotonic() - began < AT_ONCE + 5.0
    assert "\n" not in str(caught.value)
    return str(caught.value)


def complaints(connect: Callable[[], KafkaDriver]) -> set[str]:
    """Return what the calls end in, all of them made at once."""
    with futures.ThreadPoolExecutor(len(CALLS)) as pool:
        return set(pool.map(lambda call: complaint(connect(), call), CALLS))


def test_everything_at_once_works(secured: Cluster, connect_to: Connect, topic: str) -> None:
    driver = connect_to(secured.url, **secured.options())
    publish(driver, *(Record(topic, b"%d" % n) for n in range(20)))
    member = driver.subscribe([topic], topic, "earliest")
    found = gather(member, 20)
    member.commit({delivery.partition: delivery.offset + 1 for delivery in found})
    assert driver.admin().describe_topic(topic).details["partition 0"] == "leader 1; replicas 1; in sync 1"
    transaction = driver.transaction()
    transaction.offer(Record(topic, b"20"))
    assert len(transaction.commit(30)) == 1


def test_a_login_in_the_url_counts(secured: Cluster, connect_to: Connect) -> None:
    options = secured.options()
    login = f"{options.pop('sasl_username')}:{options.pop('sasl_password')}"
    url = secured.url.replace("kafka://", f"kafka://{login}@")
    assert connect_to(url, **options).admin().list_topics() is not None


def test_a_wrong_password(secured: Cluster, connect_to: Connect) -> None:
    options = secured.options() | {"sasl_password": "wr0ng-one"}
    assert complaints(lambda: connect_to(secured.url, **options)) == {
        "no broker lets us in: the login is refused: check user, password and [drivers_kafka] sasl_mechanism"
    }


@pytest.mark.parametrize("call", CALLS)
def test_a_missing_acl(
    secured: Cluster, connect_to: Connect, call: Callable[[KafkaDriver], None], topic: str
) -> None:
    publish(connect_to(secured.url, **secured.options()), Record("topic", b"there"))
    driver = connect_to(secured.url, **secured.options(CLIENT))
    if call is list_topics:
        # Brokers show nobody what he may not see, and say nothing of it.
        assert driver.admin().list_topics() == []
        return
    assert "the user lacks" in complaint(driver, call)


def test_an_untrusted_certificate(secured: Cluster, connect_to: Connect) -> None:
    options = {name: value for name, value in secured.options().items() if name != "ssl_cafile"}
    why = "TLS: its certificate is refused: unable to get local issuer certificate"
    assert complaints(lambda: connect_to(secured.url, **options)) == {unreached(secured, why)}


def test_a_certificate_for_another_host(misnamed: Cluster, connect_to: Connect) -> None:
    why = "TLS: its certificate is refused: IP address mismatch, certificate is not valid for '127.0.0.1'."
    assert complaints(lambda: connect_to(misnamed.url, **misnamed.options())) == {unreached(misnamed, why)}


def test_the_host_name_may_go_unchecked(misnamed: Cluster, connect_to: Connect, topic: str) -> None:
    driver = connect_to(misnamed.url, **misnamed.options(), ssl_check_hostname=False)
    publish(driver, Record(topic, b"1"))
    assert topic in driver.admin().list_topics()


def test_a_plain_connection_to_a_port_with_tls(secured: Cluster, connect_to: Connect) -> None:
    why = "it wants TLS, and [drivers_kafka] security_protocol is PLAINTEXT"
    assert complaints(lambda: connect_to(secured.url)) == {unreached(secured, why)}


def test_a_certificate_of_ours_that_is_refused(
    secured: Cluster, misnamed: Cluster, connect_to: Connect
) -> None:
    foreign = {name: value for name, value in secured.options().items() if name.startswith("ssl_client")}
    options = misnamed.options() | foreign
    (text,) = complaints(lambda: connect_to(misnamed.url, **options, ssl_check_hostname=False))
    assert unreached(misnamed, "TLS: it refuses our certificate, or the lack of one: ") in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ssl_cafile": "/no/ca.pem"}, "[drivers_kafka] ssl_cafile = /no/ca.pem: No such file or directory"),
        ({"ssl_cafile": __file__}, f"[drivers_kafka] ssl_cafile = {__file__}: no certificate or crl found"),
        ({"ssl_client_key_file": "/no/key.pem"}, "/no/key.pem: No such file or directory"),
    ],
)
def test_a_file_that_is_not_what_it_should_be(
    connect_to: Connect, secured: Cluster, change: dict[str, str], words: str
) -> None:
    (text,) = complaints(lambda: connect_to(secured.url, **secured.options() | change))
    assert text.endswith(words)


def test_a_user_who_may_not_see_settings_is_shown_the_rest(
    secured: Cluster, connect_to: Connect, topic: str, client: str
) -> None:
    publish(connect_to(secured.url, **secured.options()), Record(topic, b"there"))
    grant(secured, topic, "DESCRIBE")
    shown = connect_to(secured.url, **secured.options(CLIENT)).admin().describe_topic(topic)
    assert [span.stop for span in shown.spans] == [1]
    # kafka-python does not tell that there are some.
    note = "not shown: the user lacks the ACL DescribeConfigs on the topic"
    assert shown.details.get("settings") == (note if client == "confluent-kafka" else None)


def test_a_log_is_not_filled_by_tries_in_vain(
    secured: Cluster, connect_to: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    options = secured.options() | {"sasl_password": "wrong"}
    driver = connect_to(secured.url, **options)
    publisher = driver.publisher(lambda *_: None, Limits())
    publisher.offer(Record("topic", b"1"))
    member = driver.subscribe(["topic"], "group", "earliest")
    deadline = time.monotonic() + 8.0
    while time.monotonic() < deadline:
        try:
            member.poll(1, 0.5)
        except MessagingException:
            continue
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) <= 2, [record.getMessage() for record in said]


def test_a_refused_record_fails_alone_and_says_so(secured: Cluster, connect_to: Connect) -> None:
    publish(connect_to(secured.url, **secured.options()), Record("topic", b"there"))
    failures: list[tuple[Record, MessagingException]] = []
    driver = connect_to(secured.url, **secured.options(CLIENT))
    publisher = driver.publisher(lambda *failure: failures.append(failure), Limits())
    record = Record("topic", b"1", b"k", (("h", b"x"),))
    publisher.offer(record)
    assert publisher.flush(30) == 0
    ((failed, error),) = failures
    assert failed == record
    assert isinstance(error, DeliveryFailed)
    assert "ACL" in str(error)


def test_publishing_goes_on_when_the_acl_is_granted(
    secured: Cluster, connect_to: Connect, topic: str, client: str
) -> None:
    admin = connect_to(secured.url, **secured.options())
    publish(admin, Record(topic, b"there"))
    settled: list[Any] = []
    publisher = connect_to(secured.url, **secured.options(CLIENT)).publisher(lambda *_: None, Limits(retry=2))

    def sent() -> bool:
        del settled[:]
        try:
            publisher.offer(Record(topic, b"granted"), settled.append)
        except OutboxFull:
            return False
        assert publisher.flush(30) == 0
        return isinstance(settled[0], Receipt)

    assert not sent()
    grant(secured, topic, "WRITE")
    until(sent, "the record to be taken")


def grant(secured: Cluster, topic: str, operation: str) -> None:
    """Let the user ``client`` do something with a topic."""
    from confluent_kafka import admin

    options = secured.options()
    told = {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": options["security_protocol"],
        "sasl.mechanism": options["sasl_mechanism"],
        "sasl.username": options["sasl_username"],
        "sasl.password": options["sasl_password"],
        "ssl.ca.location": options["ssl_cafile"],
    }
    binding = admin.AclBinding(
        admin.ResourceType.TOPIC,
        topic,
        admin.ResourcePatternType.LITERAL,
        f"User:{CLIENT}",
        "*",
        admin.AclOperation[operation],
        admin.AclPermissionType.ALLOW,
    )
    granting = admin.AdminClient(told)
    for future in granting.create_acls([binding]).values():
        future.result()


def test_no_secret_is_in_a_driver_s_text(secured: Cluster, connect_to: Connect) -> None:
    options = secured.options()
    driver = connect_to(secured.url, **options)
    shown: list[Any] = [driver, driver.url, driver.admin()]
    assert not any(options["sasl_password"] in repr(one) for one in shown)
