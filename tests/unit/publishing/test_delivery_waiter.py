"""Waiting until records are delivered or have failed."""

import threading

import pytest

from notifier_kafka.contract.driver import Partition, Receipt
from notifier_kafka.errors import DeliveryFailed, TransportUnavailable
from notifier_kafka.publishing import delivery_waiter

RECEIPT = Receipt(Partition("t", 0), 5)


def test_receipts_come_back_once_all_are_settled() -> None:
    waiter = delivery_waiter.DeliveryWaiter()
    for _ in range(2):
        waiter.expect()
    threads = [threading.Thread(target=waiter.settle, args=(RECEIPT,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert waiter.receipts(30) == [RECEIPT, RECEIPT]
    for thread in threads:
        thread.join()


def test_nothing_expected_is_nothing_to_wait_for() -> None:
    assert delivery_waiter.DeliveryWaiter().receipts(0) == []


def test_the_first_failure_is_raised_as_a_delivery_failure() -> None:
    waiter = delivery_waiter.DeliveryWaiter()
    for _ in range(3):
        waiter.expect()
    waiter.settle(RECEIPT)
    waiter.settle(TransportUnavailable("locked"))
    waiter.settle(DeliveryFailed("another"))
    with pytest.raises(DeliveryFailed, match="not delivered: locked") as caught:
        waiter.receipts(30)
    assert isinstance(caught.value.__cause__, TransportUnavailable)


def test_what_is_not_settled_in_time_says_so() -> None:
    waiter = delivery_waiter.DeliveryWaiter()
    waiter.expect()
    with pytest.raises(DeliveryFailed, match=r"not durable within 0\.01 s; it may still arrive"):
        waiter.receipts(0.01)
