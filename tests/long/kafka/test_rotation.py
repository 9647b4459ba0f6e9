"""A file of TLS that goes after the start, as it is renewed or privileges are dropped, ends nothing."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka_drivers.kafka import diagnosis
from notifier_kafka_drivers.kafka.clients.confluent import connection, publisher
from notifier_kafka_drivers.kafka.driver import KafkaDriver
from notifier_kafka_drivers.kafka.local import certificates
from tests.shared.kafka.kafka_rig import PATIENCE, Connect, until

# kafka-python leaves it to the garbage collector when it cannot read its files.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The file of an authority; who has one may take it away."""
    made = certificates.Authority(tmp_path / "tls")
    made.create()
    file: Path = made.certificate
    return file


@pytest.fixture
def address() -> Iterator[str]:
    """Where somebody takes connections and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=hang_up, args=(server,))
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def hang_up(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            server.accept()[0].close()


@pytest.fixture
def driver(connect_to: Connect, address: str, authority: Path) -> KafkaDriver:
    return connect_to(f"kafka://{address}", security_protocol="SSL", ssl_cafile=str(authority))


def missing(authority: Path) -> str:
    return f"[drivers_kafka] ssl_cafile = {authority}: No such file or directory"


def test_it_is_what_is_wrong_at_each_address(address: str, authority: Path) -> None:
    authority.unlink()
    given = {
        "bootstrap.servers": address,
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority),
    }
    assert str(diagnosis.unreached(given)) == f"no broker is reached: {address}: {missing(authority)}"


def test_a_record_that_waits_for_its_topic_may_be_tried_again(
    driver: KafkaDriver, authority: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes: list[Any] = []
    publisher = driver.publisher(lambda *_: None, Limits(retry=1))
    publisher.offer(Record("t", b"1"), outcomes.append)
    until(lambda: "Publishing to topic t waits" in caplog.text, "the first try")
    authority.unlink()
    assert publisher.flush(PATIENCE) == 0
    (outcome,) = outcomes
    assert missing(authority) in str(outcome)
    assert isinstance(outcome, MessagingException)
    assert outcome.retriable


@pytest.mark.parametrize("client", ["confluent-kafka"])
def test_a_producer_that_has_failed_for_good_is_replaced_when_it_is_back(
    driver: KafkaDriver,
    authority: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publisher, "SUSPICIOUS_SECONDS", 1.0)
    gate: Any = driver.publisher(lambda *_: None, Limits())
    ours, before = gate._publisher, gate._publisher._producer
    aside = authority.with_suffix(".aside")
    authority.rename(aside)
    until(lambda: missing(authority) in caplog.text, "what is wrong to be told")
    # As when it failed for good, and was offered another record.
    ours._renewal_wanted = ours._state.fatal = True
    until(lambda: "ssl.ca.location failed" in caplog.text, "a try to start anew")
    assert ours._producer is before
    aside.rename(authority)
    until(lambda: ours._producer is not before, "a new producer")


def test_a_client_is_not_forgotten_where_no_new_one_can_be_made(address: str, authority: Path) -> None:
    given: Any = {"bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.location": str(authority)}
    handle = connection.create(Producer, given, connection.ConnectionState(given))
    authority.unlink()
    assert not connection.has_lost_brokers(handle, given)
