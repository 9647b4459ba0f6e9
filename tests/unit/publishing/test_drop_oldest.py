"""The overflow policy drop_oldest, over an SQLite log that is locked meanwhile."""

import logging
from pathlib import Path

import pytest
from oslo_config import cfg

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import NAMESPACE, Driver, Limits, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.publishing.drop_oldest import DropOldestPublisher
from notifier_kafka.stats.counters import Counters
from notifier_kafka.stats.losses import Losses
from tests.shared.log_lock import locked

Lost = list[tuple[Record, MessagingException]]


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    url = TransportURL.parse(cfg.ConfigOpts(), f"sqlite:///{tmp_path}/bus.db?busy_timeout=0.1&partitions=1")
    loaded: Driver = plugins.load(NAMESPACE, "sqlite")(url)
    return loaded


def publisher_and_lost(driver: Driver, limits: Limits) -> tuple[DropOldestPublisher, Lost]:
    lost: Lost = []
    losses = Losses(
        Counters(logging.getLogger("drop-oldest-under-test")),
        lambda record, error: lost.append((record, error)),
    )
    return DropOldestPublisher(driver, limits, losses), lost


def warm_up(publisher: DropOldestPublisher) -> None:
    """Create the log and the topic, so that the driver only has to wait for the lock."""
    publisher.offer(Record("topic", b"first"))
    assert publisher.flush(30) == 0


def values(driver: Driver) -> list[bytes | None]:
    return [found.record.value for span in driver.spans(["topic"]) for found in driver.read(span)]


@pytest.mark.parametrize("limits", [Limits(records=20), Limits(bytes=20 * 4)], ids=["records", "bytes"])
def test_the_newest_are_kept_in_order(driver: Driver, tmp_path: Path, limits: Limits) -> None:
    publisher, lost = publisher_and_lost(driver, limits)
    warm_up(publisher)
    sent = [b"%04d" % number for number in range(100)]

    with locked(tmp_path / "bus.db"):
        for value in sent:
            publisher.offer(Record("topic", value))
    assert publisher.flush(30) == 0

    # The driver has half of the room, and with it the first ten.
    assert values(driver) == [b"first", *sent[:10], *sent[90:]]
    assert [record.value for record, _ in lost] == sent[10:90]
    assert {type(error) for _, error in lost} == {OutboxFull}
    publisher.close()
    driver.close()


def test_a_record_with_a_waiting_caller_is_not_queued(driver: Driver, tmp_path: Path) -> None:
    publisher, lost = publisher_and_lost(driver, Limits(records=2))
    warm_up(publisher)
    waiter = DeliveryWaiter()
    waiter.expect()

    with locked(tmp_path / "bus.db"):
        publisher.offer(Record("topic", b"waited for"), waiter.settle)
        with pytest.raises(OutboxFull):
            publisher.offer(Record("topic", b"too many"), waiter.settle)

    assert [type(receipt) for receipt in waiter.receipts(30)] == [Receipt]
    assert lost == []
    publisher.close()
    driver.close()


def test_closing_reports_what_still_waits(driver: Driver, tmp_path: Path) -> None:
    publisher, lost = publisher_and_lost(driver, Limits(records=2))
    warm_up(publisher)

    with locked(tmp_path / "bus.db"):
        publisher.offer(Record("topic", b"taken"))
        publisher.offer(Record("topic", b"waits"))
        publisher.close()

    assert (Record("topic", b"waits"), DeliveryFailed) in [(record, type(error)) for record, error in lost]
    driver.close()
