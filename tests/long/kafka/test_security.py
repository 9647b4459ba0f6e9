"""TLS, SASL and ACLs: what works, and the one clear error for each thing that is wrong."""

import json
import logging
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.cli import main
from notifier_kafka.cli.commands import topics
from notifier_kafka.config import options as bus_options
from notifier_kafka.contract.driver import Limits, Partition, Receipt, Record, Span
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.testing.clusters import ClusterMaker
from notifier_kafka_drivers.kafka import options as driver_options
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local import certificates
from notifier_kafka_drivers.kafka.local.broker_users import CLIENT, Security
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until

AT_ONCE = 10.0
CLUSTERS = ("secured", "misnamed", "certified")
WRONG = "wr0ng-one"
REFUSED = "TLS: it refuses our certificate: expired, or of an unknown authority: "
NO_LOGIN = "the brokers refuse the login: check user, password and [drivers_kafka] sasl_mechanism"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with TLS, SCRAM and ACLs; the user ``client`` may do nothing."""
    cluster = Cluster(
        tmp_path_factory.mktemp("secured"),
        security=Security(tls=True, sasl="scram", acls=True),
        ends_with_parent=True,
    )
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def misnamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker whose certificate is for another host."""
    security = Security(tls=True, hosts=("elsewhere.example",))
    cluster = Cluster(tmp_path_factory.mktemp("misnamed"), security=security, ends_with_parent=True)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that lets in only who shows a certificate of its authority."""
    security = Security(tls=True, acls=True)
    cluster = Cluster(tmp_path_factory.mktemp("certified"), security=security, ends_with_parent=True)
    cluster.start()
    yield cluster
    cluster.stop()


def grant(secured: Cluster, name: str, right: str) -> None:
    """Let the user ``client`` do something with a topic or group, such as "TOPIC READ"."""
    from confluent_kafka import admin

    kind, operation = right.split()
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
        admin.ResourceType[kind],
        name,
        admin.ResourcePatternType.LITERAL,
        f"User:{CLIENT}",
        "*",
        admin.AclOperation[operation],
        admin.AclPermissionType.ALLOW,
    )
    wanted = admin.AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )
    granting = admin.AdminClient(told)
    for future in granting.create_acls([binding]).values():
        future.result()
    until(lambda: granting.describe_acls(wanted).result(), "the broker to know of the right")


@pytest.fixture
def run(secured: Cluster, client: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command as the user who may do nothing."""

    def call(*argv: str) -> tuple[int, str, str]:
        url = f"{secured.url}?client={client}"
        code = main.main(("--config-file", str(secured.ini(CLIENT)), "--transport-url", url, *argv))
        captured = capsys.readouterr()
        return int(code), captured.out, captured.err

    return call


def list_topics(driver: KafkaDriver) -> None:
    driver.admin().list_topics()


def poll(driver: KafkaDriver, topic: str = "topic") -> None:
    """Also as the member of a group of that name."""
    member = driver.subscribe([topic], topic, "earliest")
    deadline = time.monotonic() + AT_ONCE
    while time.monotonic() < deadline:
        member.poll(1, 0.5)


def send(driver: KafkaDriver, topic: str = "topic") -> None:
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits(retry=0))
    publisher.offer(Record(topic, b"1"))
    publisher.flush(AT_ONCE)
    publisher.close()
    raise failures[0]


CALLS: list[Callable[[KafkaDriver], None]] = [list_topics, poll, send]


def unreached(cluster: Cluster, why: str) -> str:
    return f"no broker is reached: {cluster.bootstrap}: {why}"


def complaint(driver: KafkaDriver, call: Callable[[KafkaDriver], None]) -> str:
    """Return the error of a call, for which it has AT_ONCE, in one line."""
    with futures.ThreadPoolExecutor(1) as pool:
        error = pool.submit(call, driver).exception(AT_ONCE)
    assert isinstance(error, MessagingException)
    assert "\n" not in str(error)
    return str(error)


def complaints(connect: Callable[[], KafkaDriver]) -> set[str]:
    """Return what the calls end in, all of them made at once."""
    with futures.ThreadPoolExecutor(len(CALLS)) as pool:
        return set(pool.map(lambda call: complaint(connect(), call), CALLS))


@pytest.fixture(autouse=True)
def discreet(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Find no secret of a cluster in the log, whatever went wrong."""
    used = [request.getfixturevalue(name) for name in CLUSTERS if name in request.fixturenames]
    secrets = [secret for cluster in used for secret in cluster.saved_state.passwords.values()]
    yield
    said = [record.getMessage() for record in caplog.get_records("call")]
    assert [text for text in said for secret in [*secrets, WRONG] if secret in text] == []


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


def test_the_other_mechanism(secured: Cluster, connect_to: Connect, topic: str) -> None:
    options = secured.options() | {"sasl_mechanism": "SCRAM-SHA-256"}
    assert secured.options()["sasl_mechanism"] == "SCRAM-SHA-512"
    publish(connect_to(secured.url, **options), Record(topic, b"1"))


def test_a_wrong_password(secured: Cluster, connect_to: Connect) -> None:
    options = secured.options() | {"sasl_password": WRONG}
    assert complaints(lambda: connect_to(secured.url, **options)) == {NO_LOGIN}


def test_a_wrong_password_that_is_sent_as_it_is(connect_to: Connect, tmp_path: pathlib.Path) -> None:
    cluster = Cluster(tmp_path / "plain", security=Security(sasl="plain"), ends_with_parent=True)
    cluster.start()
    try:
        assert connect_to(cluster.url, **cluster.options()).admin().list_topics() is not None
        options = cluster.options() | {"sasl_password": WRONG}
        assert complaints(lambda: connect_to(cluster.url, **options)) == {NO_LOGIN}
    finally:
        cluster.stop(0.0)


def test_what_a_refused_login_does_not_take_stays_in_the_spool(
    secured: Cluster, connect_to: Connect, topic: str, client: str, tmp_path: pathlib.Path
) -> None:
    def connect(**login: str) -> transport.NotificationTransport:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        bus_options.register(conf)
        conf.register_opts(driver_options.OPTS, group=driver_options.GROUP)
        for name, value in {"client": client, **secured.options(), **login}.items():
            conf.set_override(name, value, group=driver_options.GROUP)
        for name, value in {"spool_dir": str(tmp_path / "spool"), "exit_timeout": 1.0}.items():
            conf.set_override(name, value, group=bus_options.NOTIFICATIONS)
        return transport.get_notification_transport(conf, secured.url)

    refused = connect(sasl_password=WRONG)
    sender = notifier.Notifier(refused, "p", driver="messagingv2", topics=[topic])
    for number in range(20):
        sender.info({}, "e", number)
    until(lambda: sender.stats().waiting == 20 and not sender.flush(0.0), "all to be on the disk")
    assert sender.stats().lost == {}
    refused.cleanup()
    allowed = connect()
    allowed.prepare()
    driver = connect_to(secured.url, **secured.options())
    until(
        lambda: sum(s.stop - s.start for s in driver.spans([f"{topic}.info"])) == 20, "the spool to be sent"
    )
    until(lambda: not allowed.stats().waiting, "the spool to be empty")
    assert allowed.stats().lost == {}
    allowed.cleanup()


def test_brokers_show_nobody_what_he_may_not_see(secured: Cluster, connect_to: Connect, topic: str) -> None:
    publish(connect_to(secured.url, **secured.options()), Record(topic, b"there"))
    assert topic not in connect_to(secured.url, **secured.options(CLIENT)).admin().list_topics()


def create(driver: KafkaDriver, topic: str) -> None:
    driver.admin().create_topic(f"{topic}-new", 1)


def describe(driver: KafkaDriver, topic: str) -> None:
    driver.admin().describe_topic(topic)


def read(driver: KafkaDriver, topic: str) -> None:
    list(driver.read(Span(Partition(topic, 0), 0, 1)))


def send_in_transaction(driver: KafkaDriver, topic: str) -> None:
    transaction = driver.transaction()
    transaction.offer(Record(topic, b"1"))
    transaction.commit(AT_ONCE)


def send_to_new(driver: KafkaDriver, topic: str) -> None:
    send(driver, f"{topic}-new")


ON_TOPIC = "topic {}: the user lacks an ACL on the topic: Read and Describe to listen, Write and Create to"
ON_GROUP = "the user lacks the ACL Read on the group"


@pytest.mark.parametrize(
    ("granted", "call", "words"),
    [
        (["GROUP READ", "TOPIC DESCRIBE"], poll, ON_TOPIC),
        (["GROUP READ"], poll, ON_TOPIC),
        (["TOPIC READ"], poll, ON_GROUP),
        (["TOPIC DESCRIBE"], read, ON_TOPIC),
        (["TOPIC DESCRIBE"], send, ON_TOPIC),
        (["TOPIC WRITE"], send_in_transaction, "the user lacks the ACL Write on the transactional id"),
        ([], send_to_new, ON_TOPIC.replace("{}", "{}-new")),
        ([], create, ON_TOPIC.replace("{}", "{}-new")),
        ([], describe, ON_TOPIC),
    ],
)
def test_a_missing_acl(
    secured: Cluster,
    connect_to: Connect,
    topic: str,
    granted: list[str],
    call: Callable[[KafkaDriver, str], None],
    words: str,
) -> None:
    publish(connect_to(secured.url, **secured.options()), Record(topic, b"there"))
    for right in granted:
        grant(secured, topic, right)
    driver = connect_to(secured.url, **secured.options(CLIENT))
    assert words.format(topic) in complaint(driver, lambda driver: call(driver, topic))


def test_who_may_read_a_topic_needs_no_group_for_a_span(
    secured: Cluster, connect_to: Connect, topic: str
) -> None:
    publish(connect_to(secured.url, **secured.options()), Record(topic, b"there"))
    grant(secured, topic, "TOPIC READ")
    driver = connect_to(secured.url, **secured.options(CLIENT))
    assert [d.record.value for span in driver.spans([topic]) for d in driver.read(span)] == [b"there"]


def test_a_missing_acl_ends_a_command_with_its_name(
    secured: Cluster, connect_to: Connect, client: str, topic: str, tmp_path: pathlib.Path
) -> None:
    """Each where it has some of the rights that it needs."""
    admin = connect_to(secured.url, **secured.options())
    cases = [
        (["GROUP READ", "TOPIC DESCRIBE"], "listen --pool {} --priority info --topic {}", ON_TOPIC),
        (["GROUP READ"], "listen --pool {} --priority info --topic {}", ON_TOPIC),
        (["TOPIC READ"], "listen --pool {} --priority info --topic {}", ON_GROUP),
        (["TOPIC READ"], "listen --priority info --topic {}", ON_GROUP),
        (["TOPIC DESCRIBE"], "send --topic {} 1", ON_TOPIC),
        ([], "topics create {}-new", ON_TOPIC.replace("{}", "{}-new")),
        ([], "topics show {}.info", ON_TOPIC),
    ]
    program = [sys.executable, "-m", "notifier_kafka.cli.main", "--config-file", str(secured.ini(CLIENT))]
    program += ["--transport-url", f"{secured.url}?client={client}"]
    environment = os.environ | {"HOME": str(tmp_path)}

    def run(number: int) -> tuple[int, str, str]:
        granted, arguments, words = cases[number]
        name = f"{topic}-{number}"
        publish(admin, Record(f"{name}.info", b"there"))
        for right in granted:
            grant(secured, name if right.startswith("GROUP") else f"{name}.info", right)
        command = [*program, *arguments.replace("{}", name).split()]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment, timeout=60
        )
        asked = name if "create" in arguments else f"{name}.info"
        return done.returncode, done.stdout, done.stderr.replace(words.format(asked), "WHAT IS LACKING")

    with futures.ThreadPoolExecutor(2) as pool:
        for (_, arguments, _), (code, out, err) in zip(cases, pool.map(run, range(len(cases))), strict=True):
            assert (code, out, err.count("\n")) == (3, "", 1), (arguments, err)
            assert "WHAT IS LACKING" in err, arguments


def test_an_untrusted_certificate(secured: Cluster, connect_to: Connect) -> None:
    options = {name: value for name, value in secured.options().items() if name != "ssl_cafile"}
    why = "TLS: its certificate is refused: unable to get local issuer certificate"
    assert complaints(lambda: connect_to(secured.url, **options)) == {unreached(secured, why)}


def test_a_certificate_that_has_expired(
    connect_to: Connect, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / "expired", security=Security(tls=True), ends_with_parent=True)
    certificates.Authority(cluster.directory / "tls").create()
    monkeypatch.setattr(certificates, "_VALID_DAYS", "0")
    cluster.start()
    try:
        options = {"ssl_cafile": cluster.options()["ssl_cafile"], "security_protocol": "SSL"}
        why = "TLS: its certificate is refused: certificate has expired"
        assert complaints(lambda: connect_to(cluster.url, **options)) == {unreached(cluster, why)}
    finally:
        cluster.stop(0.0)


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
    assert unreached(misnamed, REFUSED) in text


def test_a_certificate_of_ours_is_who_we_are(certified: Cluster, connect_to: Connect, topic: str) -> None:
    publish(connect_to(certified.url, **certified.options()), Record(topic, b"there"))
    driver = connect_to(certified.url, **certified.options(CLIENT))
    assert ON_TOPIC.format(topic) in complaint(driver, lambda driver: describe(driver, topic))


def test_a_key_of_ours_may_be_encrypted(
    certified: Cluster, connect_to: Connect, topic: str, tmp_path: pathlib.Path
) -> None:
    options, key = certified.options(), tmp_path / "encrypted.key"
    how = ["-aes256", "-passout", "pass:s3same", "-in", options["ssl_client_key_file"], "-out", str(key)]
    subprocess.run(["openssl", "pkey", *how], check=True, capture_output=True)
    options["ssl_client_key_file"] = str(key)
    publish(
        connect_to(certified.url, **options, ssl_client_key_password="s3same"),
        Record(topic, b"there"),
    )


def without_certificate(cluster: Cluster) -> dict[str, str]:
    return {name: value for name, value in cluster.options().items() if not name.startswith("ssl_client")}


def test_no_certificate_where_one_is_required(certified: Cluster, connect_to: Connect) -> None:
    why = "TLS: it wants a client certificate, and [drivers_kafka] ssl_client_cert_file is not set"
    options = without_certificate(certified)
    assert complaints(lambda: connect_to(certified.url, **options)) == {unreached(certified, why)}


@pytest.mark.parametrize("wrong", ["foreign", "expired"])
def test_a_wrong_certificate_where_one_is_required(
    certified: Cluster,
    connect_to: Connect,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
) -> None:
    foreign = wrong == "foreign"
    authority = certificates.Authority(tmp_path if foreign else certified.directory / "tls")
    authority.create()
    monkeypatch.setattr(certificates, "_VALID_DAYS", "3650" if foreign else "0")
    authority.sign(tmp_path.name)
    options = certified.options() | {
        "ssl_client_cert_file": str(authority.certificate_of(tmp_path.name)),
        "ssl_client_key_file": str(authority.key_of(tmp_path.name)),
    }
    (text,) = complaints(lambda: connect_to(certified.url, **options))
    assert unreached(certified, REFUSED) in text


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
    secured: Cluster, connect_to: Connect, topic: str, run: Run
) -> None:
    publish(connect_to(secured.url, **secured.options()), Record(topic, b"there"))
    grant(secured, topic, "TOPIC DESCRIBE")
    code, out, err = run("topics", "show", topic, "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert shown["records"] == 1
    note = "not shown: the user lacks the ACL DescribeConfigs on the topic"
    assert shown["details"] == {"settings": note}


def test_who_may_make_a_topic_and_not_see_it_is_told_that_it_was_made(
    secured: Cluster, connect_to: Connect, topic: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "DESCRIBE_TIMEOUT_SECONDS", 0.0)
    grant(secured, topic, "TOPIC CREATE")
    code, out, err = run("topics", "create", topic, "--partitions", "2", "--json")
    assert code == 0
    assert json.loads(out) == [{"name": topic, "partitions": 2, "records": None}]
    assert (
        f"topic '{topic}' was created, but cannot be described: topic {topic}: the user lacks an ACL" in err
    )
    assert len(connect_to(secured.url, **secured.options()).admin().describe_topic(topic).spans) == 2


def wrong_password(cluster: Cluster) -> dict[str, str]:
    return {**cluster.options(), "sasl_password": WRONG}


@pytest.mark.parametrize(
    ("name", "change"), [("secured", wrong_password), ("certified", without_certificate)]
)
def test_a_log_is_not_filled_by_tries_in_vain(
    request: pytest.FixtureRequest,
    connect_to: Connect,
    caplog: pytest.LogCaptureFixture,
    name: str,
    change: Callable[[Cluster], dict[str, str]],
) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    driver = connect_to(cluster.url, **change(cluster))
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
    grant(secured, topic, "TOPIC WRITE")
    until(sent, "the record to be taken")


def test_no_secret_is_in_a_driver_s_text(secured: Cluster, connect_to: Connect) -> None:
    options = secured.options()
    driver = connect_to(secured.url, **options)
    shown: list[Any] = [driver, driver.url, driver.admin()]
    assert not any(options["sasl_password"] in repr(one) for one in shown)


def test_no_secret_is_logged_at_debug(
    make_kafka_cluster: ClusterMaker,
    connect_to: Connect,
    topic: str,
    client: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = make_kafka_cluster(security=Security(sasl="plain"))
    options = cluster.options()
    secret = options["sasl_password"]
    caplog.set_level(logging.DEBUG, "kafka")
    caplog.set_level(logging.DEBUG, "notifier_kafka_drivers.kafka")
    extra = {"client_properties": {"debug": "all"}} if client == "confluent-kafka" else {}
    driver = connect_to(cluster.url, **options, **extra)
    publish(driver, Record(topic, b"1"))
    driver.subscribe([topic], topic, "earliest").poll(1, 0.5)
    said = [record.getMessage() for record in caplog.records]
    spoke = "kafka.admin.client" if client == "kafka-python" else "notifier_kafka_drivers.kafka"
    assert any(record.name.startswith(spoke) for record in caplog.records)
    assert [text for text in said if secret in text] == []
