"""Putting records on the log again, from the command line."""

import itertools
import time
from collections.abc import Iterable

from notifier_kafka.cli.exits import Partial
from notifier_kafka.contract.driver import Driver, Limits, Publisher, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter

AT_ONCE = 1_000  # records in memory
PATIENCE = 60.0  # seconds until each thousand is durable
PAUSE = 0.01


def republish(driver: Driver, records: Iterable[Record]) -> int:
    """Publish records in their order and return how many there were, once all are durable.

    Raises ``Partial`` when some before the failure are durable.
    """
    done = 0
    source = iter(records)
    publisher = driver.publisher(_expect_nothing, Limits())
    try:
        while chunk := list(itertools.islice(source, AT_ONCE)):
            _publish(publisher, chunk)
            done += len(chunk)
    except MessagingException as error:
        if done:
            raise Partial(f"stopped after {done}, which are durable: {error}") from error
        raise
    finally:
        publisher.close()
    return done


def _publish(publisher: Publisher, records: Iterable[Record]) -> None:
    waiter = DeliveryWaiter()
    deadline = time.monotonic() + PATIENCE
    for record in records:
        waiter.expect()
        while not _offered(publisher, record, waiter):
            if time.monotonic() > deadline:
                raise DeliveryFailed(f"the log took nothing for {PATIENCE:g} s")
            time.sleep(PAUSE)
    waiter.receipts(max(0.0, deadline - time.monotonic()))


def _offered(publisher: Publisher, record: Record, waiter: DeliveryWaiter) -> bool:
    try:
        publisher.offer(record, waiter.settle)
    except OutboxFull:
        return False
    return True


def _expect_nothing(record: Record, error: MessagingException) -> None:
    # Every record is offered with a callback of its own, so the publisher has nothing to say.
    raise AssertionError(f"{record.topic}: {error}")
