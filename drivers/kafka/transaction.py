"""Publishing all or nothing: in memory until ``commit``, then in one of Kafka's transactions.

A transaction that is open on the brokers holds up every listener that reads committed records. So none is
open while the user makes the records, however long that takes.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.contract.record_size import size_in_bytes
from notifier_kafka.errors import DeliveryFailed, MessagingException, TransportUnavailable

from . import naming
from .clients import protocol
from .properties import REQUEST_TIMEOUT_SECONDS
from .publishing.partitioning import Topics
from .publishing.topic_creation import refuse_too_large

VISIBLE_TIMEOUT_SECONDS = 1.0  # from the end of a commit until its records can be read
VISIBLE_CHECK_SECONDS = 0.005
CLAIM_TIMEOUT_SECONDS = 60.0  # until a transaction that another process left open is aborted
Ends = Callable[[Iterable[Partition]], dict[Partition, int]]


class Transactors:
    """Keeps the producers of transactions for reuse: a new one has to register with the brokers first."""

    def __init__(self, make: Callable[[str], protocol.Transactor]) -> None:
        self._make = make
        self._idle: list[protocol.Transactor] = []
        self._named: dict[str, protocol.Transactor] = {}
        self._lock = threading.Lock()
        self._closed = False

    def claim(self, name: str) -> None:
        """Fence the producer that had the name before, and abort the transaction that it left open."""
        with self._lock:
            if name in self._named:
                return
        transactor = self._make(naming.owned(name))
        deadline = time.monotonic() + CLAIM_TIMEOUT_SECONDS
        try:
            # The registration does it.
            transactor.begin(deadline)
            transactor.abort(deadline)
        except BaseException:
            transactor.close()
            raise
        with self._lock:
            self._named[name] = transactor

    def publish(self, records: list[Record], timeout: float, name: str | None = None) -> list[Receipt]:
        with self._lock:
            if self._closed:
                raise DeliveryFailed("the Kafka driver is closed: make a new one")
            if name is not None:
                transactor = self._named.pop(name, None)
            else:
                transactor = self._idle.pop() if self._idle else None
        if transactor is None:
            # Each has an id of its own: two producers with the same id fence each other.
            transactor = self._make(naming.private() if name is None else naming.owned(name))
        try:
            receipts = _publish(transactor, records, timeout)
        except BaseException:
            transactor.close()
            raise
        with self._lock:
            if not self._closed:
                if name is None:
                    self._idle.append(transactor)
                else:
                    self._named[name] = transactor
                return receipts
        transactor.close()
        return receipts

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = [*self._idle, *self._named.values()], []
            self._named.clear()
        for transactor in idle:
            transactor.close()


def _publish(transactor: protocol.Transactor, records: list[Record], timeout: float) -> list[Receipt]:
    """Publish in one transaction, which is aborted when a record fails."""
    deadline = time.monotonic() + timeout
    transactor.begin(deadline)
    try:
        receipts = _receipts(transactor.send(records, deadline), timeout)
    except MessagingException:
        # If this fails, the brokers abort it when it times out; until then listeners wait.
        with contextlib.suppress(MessagingException):
            transactor.abort(time.monotonic() + REQUEST_TIMEOUT_SECONDS)
        raise
    try:
        transactor.commit(deadline)
    except TransportUnavailable as error:
        raise DeliveryFailed(
            f"transaction: no answer to the commit within {timeout:g} s ({error}): all of it may be "
            "visible or become so, or nothing; read the topics before sending it again"
        ) from error
    return receipts


def _receipts(outcomes: Sequence[Receipt | MessagingException | None], timeout: float) -> list[Receipt]:
    for outcome in outcomes:
        if isinstance(outcome, MessagingException):
            raise outcome
    receipts = [outcome for outcome in outcomes if isinstance(outcome, Receipt)]
    if len(receipts) < len(outcomes):
        raise DeliveryFailed(f"not all of {len(outcomes)} records were confirmed in {timeout:g} s")
    return receipts


class KafkaTransaction:
    """A ``Transaction``."""

    def __init__(
        self, transactors: Transactors, topics: Topics, ends: Ends, largest: int, name: str | None = None
    ) -> None:
        self._transactors = transactors
        self._topics = topics
        self._ends = ends
        self._largest = largest
        self._name = name
        self._records: list[Record] = []
        self._ended = False

    def offer(self, record: Record) -> None:
        if self._ended:
            raise DeliveryFailed("the transaction has ended: begin another one")
        complaint = naming.complaint(record.topic)
        if complaint:
            raise DeliveryFailed(complaint)
        refuse_too_large(record, size_in_bytes(record), self._largest)
        self._records.append(record)

    def commit(self, timeout: float) -> list[Receipt]:
        if self._ended:
            raise DeliveryFailed("the transaction has ended: begin another one")
        self._ended = True
        if not self._records:
            return []
        try:
            counts = {
                topic: self._topics.ensure(topic) for topic in {record.topic for record in self._records}
            }
            assigned = [self._topics.assign(record, counts[record.topic]) for record in self._records]
            receipts = self._transactors.publish(assigned, timeout, self._name)
        except DeliveryFailed:
            raise
        except MessagingException as error:
            raise DeliveryFailed(f"transaction aborted: {error}") from error
        self._wait_until_visible(receipts)
        return receipts

    def _wait_until_visible(self, receipts: list[Receipt]) -> None:
        """Wait until the records can be read: brokers confirm a commit before they have written it.

        Not for long: an open transaction of somebody else before it hides the records as well.
        """
        last: dict[Partition, int] = {}
        for partition, offset in receipts:
            last[partition] = max(last.get(partition, 0), offset)
        deadline = time.monotonic() + VISIBLE_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                ends = self._ends(last)
            except MessagingException:
                return
            if all(ends.get(partition, 0) > offset for partition, offset in last.items()):
                return
            time.sleep(VISIBLE_CHECK_SECONDS)

    def abort(self) -> None:
        self._ended = True
        self._records.clear()
