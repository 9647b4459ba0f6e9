"""Publishing records to the log again, from the command line."""

import itertools
import time
from collections.abc import Iterable

from notifier_kafka.cli.exits import Partial
from notifier_kafka.contract.driver import Driver, Limits, Publisher, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter

CHUNK_RECORDS = 1_000  # held in memory at once
CHUNK_TIMEOUT_SECONDS = 60.0  # until a chunk must be durable
RETRY_SECONDS = 0.01


def republish(driver: Driver, records: Iterable[Record]) -> int:
    """Publish records in their order; return how many there were, once all are durable.

    Raises ``Partial`` if it fails after some are durable.
    """
    published = 0
    source = iter(records)
    publisher = driver.publisher(_raise_unexpected, Limits())
    try:
        while chunk := list(itertools.islice(source, CHUNK_RECORDS)):
            _publish(publisher, chunk)
            published += len(chunk)
    except MessagingException as error:
        if published:
            raise Partial(f"stopped after {published} records, which are durable: {error}") from error
        raise
    finally:
        publisher.close()
    return published


def _publish(publisher: Publisher, records: Iterable[Record]) -> None:
    waiter = DeliveryWaiter()
    deadline = time.monotonic() + CHUNK_TIMEOUT_SECONDS
    for record in records:
        waiter.expect()
        while not _try_offer(publisher, record, waiter):
            if time.monotonic() > deadline:
                raise DeliveryFailed(f"the log accepted no record for {CHUNK_TIMEOUT_SECONDS:g} s")
            time.sleep(RETRY_SECONDS)
    waiter.receipts(max(0.0, deadline - time.monotonic()))


def _try_offer(publisher: Publisher, record: Record, waiter: DeliveryWaiter) -> bool:
    try:
        publisher.offer(record, waiter.settle)
    except OutboxFull:
        return False
    return True


def _raise_unexpected(record: Record, error: MessagingException) -> None:
    # Every record is offered with its own callback, so the publisher calls this for none.
    raise AssertionError(f"{record.topic}: {error}")
