"""Publishing all or nothing: memory until ``commit``, then one of Kafka's transactions.

A transaction that is open on the brokers holds up every listener that reads what is
committed. So none is open while the user makes up the records, however long that takes.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, TransportUnavailable

from . import naming
from .clients import protocol
from .properties import REQUEST_TIMEOUT_SECONDS
from .publishing.partitioning import Topics

SIGHT = 1.0  # seconds at most from the end of a commit until its records are seen
LOOK = 0.005
CLAIM = 60.0  # seconds at most until what another process left open is aborted
Ends = Callable[[Iterable[Partition]], dict[Partition, int]]


class Transactors:
    """Keeps the producers of transactions for the next ones: a new one has to be made known first."""

    def __init__(self, make: Callable[[str], protocol.Transactor]) -> None:
        self._make = make
        self._idle: list[protocol.Transactor] = []
        self._named: dict[str, protocol.Transactor] = {}
        self._lock = threading.Lock()
        self._closed = False

    def claim(self, name: str) -> None:
        """Shut out who had the name before, and have what that one left open aborted."""
        with self._lock:
            if name in self._named:
                return
        transactor = self._make(naming.owned(name))
        deadline = time.monotonic() + CLAIM
        try:
            # To be made known is what does it.
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
            # An id of its own for each: two producers of one id shut each other out.
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
    """Publish in one transaction, which is aborted unless it was told to commit."""
    deadline = time.monotonic() + timeout
    transactor.begin(deadline)
    try:
        receipts = _receipts(transactor.send(records, deadline), timeout)
    except MessagingException:
        # Else the brokers abort it when its timeout is over; nobody reads it until then.
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
        size = len(record.value or b"") + len(record.key or b"")
        if size > self._largest:
            raise DeliveryFailed(
                f"topic {record.topic}: a record of {size} bytes exceeds {self._largest}: "
                "raise [drivers_kafka] max_request_size or send less"
            )
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
            placed = [self._topics.place(record, counts[record.topic]) for record in self._records]
            receipts = self._transactors.publish(placed, timeout, self._name)
        except DeliveryFailed:
            raise
        except MessagingException as error:
            raise DeliveryFailed(f"transaction aborted: {error}") from error
        self._await_sight(receipts)
        return receipts

    def _await_sight(self, receipts: list[Receipt]) -> None:
        """Wait until the brokers have written down that it is committed, which they confirm before.

        Not for long: another's open transaction before it keeps it out of sight as well.
        """
        last: dict[Partition, int] = {}
        for partition, offset in receipts:
            last[partition] = max(last.get(partition, 0), offset)
        deadline = time.monotonic() + SIGHT
        while time.monotonic() < deadline:
            try:
                ends = self._ends(last)
            except MessagingException:
                return
            if all(ends.get(partition, 0) > offset for partition, offset in last.items()):
                return
            time.sleep(LOOK)

    def abort(self) -> None:
        self._ended = True
        self._records.clear()
