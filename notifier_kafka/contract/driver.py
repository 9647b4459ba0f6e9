"""The contract of a transport driver.

A driver is a durable log: topics have partitions, partitions have records numbered by
offset. A driver has no policy and knows nothing of notifications. All values that are
passed to and from a driver are immutable.

The clauses, each with a test of that number in ``notifier_kafka.testing.conformance``:

1. A record that is reported neither failed nor pending after ``flush`` is durable at the
   level that the driver declares. No record is dropped silently.
2. Records with the same topic and key stay in the order in which they were offered.
3. A subscription never yields an offset twice, unless it lost and regained the
   partition or was told to seek.
4. ``commit`` is cumulative, never moves back, and for a partition no longer
   owned raises ``CommitRefused`` and changes nothing.
5. Uncommitted records go to another member after ``close()`` or after the owner dies.
6. Groups are independent; within a group a partition has one owner.
7. A driver raises only this package's errors. Each has ``retriable``.
8. Publishing, ``spans`` and ``read`` are thread-safe. A subscription belongs to
   one thread; ``close()`` from another thread is safe.
9. ``poll`` returns within its timeout. Constructors and imports do no I/O.
   ``read`` ends when it is past ``stop``, even if offsets are missing.
10. The records of a transaction become visible together, in the order offered within
    (topic, key), or not at all. A driver need not have transactions.

Intentionally not in a driver: acknowledging or refusing one message, batching, filters,
priorities, JSON, threads of the listener, feature flags.
"""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import DeliveryFailed, MessagingException

NAMESPACE = "notifier_kafka.drivers"
"""The entry points of drivers, by URL scheme."""

Headers = tuple[tuple[str, bytes], ...]


# NamedTuples, not frozen dataclasses: one is made for every notification, and a frozen
# dataclass takes three times as long to make.
class Record(NamedTuple):
    """Bytes for a topic. A ``value`` of None is a tombstone."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class Partition(NamedTuple):
    topic: str
    number: int


class Delivery(NamedTuple):
    """A record with its position on the log. ``timestamp`` is in seconds since the epoch."""

    record: Record
    partition: Partition
    offset: int
    timestamp: float


class Receipt(NamedTuple):
    """Where a record is stored, durably."""

    partition: Partition
    offset: int


class Span(NamedTuple):
    """The offsets from ``start`` up to, but not including, ``stop``."""

    partition: Partition
    start: int
    stop: int


class Limits(NamedTuple):
    """How much a publisher holds before ``offer`` raises, and how it retries.

    ``retry`` is how often a record is sent again after a retriable error; -1 is without
    limit. The driver does this, because only there later records cannot overtake a record
    that is retried (clause 2).
    """

    records: int = 100_000
    bytes: int = 64 * 1024 * 1024
    retry: int = -1


# The constructors of named tuples are Python code. These make the same without it, for loops
# over every record.
make_record: partial[Any] = partial(tuple.__new__, Record)
make_delivery: partial[Any] = partial(tuple.__new__, Delivery)
make_receipt: partial[Any] = partial(tuple.__new__, Receipt)


class TopicDescription(NamedTuple):
    """A topic. ``spans`` are the offsets that each partition holds now."""

    name: str
    spans: tuple[Span, ...]
    details: Mapping[str, str]


class GroupDescription(NamedTuple):
    """A group. ``positions`` are committed; ``lag`` is the number of records still to be read.

    ``lag`` is for every partition of the group's topics: topics in which it has a position or
    a member has a partition. A partition without a position counts from where it begins.
    """

    name: str
    members: Mapping[str, frozenset[Partition]]
    positions: Mapping[Partition, int]
    lag: Mapping[Partition, int]


Positions = Mapping[Partition, int]
"""The next offset to read, by partition."""

Start = Literal["earliest", "latest"] | float
"""Where a group without a position begins. A float is a time in seconds since the epoch."""

OnFailure = Callable[[Record, MessagingException], None]
"""Called on a thread of the driver for a record that will not become durable."""

OnDeleted = Callable[[Sequence[Delivery]], None]
"""Called on a thread of the driver with records that its retention has deleted."""

OnSettled = Callable[[Receipt | MessagingException], None]
"""Called once for one record, on a thread of the driver, when it is durable or has failed."""


class Publisher(Protocol):
    """Sends records to the log. Thread-safe."""

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        """Hand over ``record`` without blocking on I/O.

        On return the record is accepted: it becomes durable or is reported as failed. The
        outcome goes to ``on_settled`` if given; otherwise a failure goes to the publisher's
        ``on_failure``. Raises ``OutboxFull`` when there is no room (nothing was accepted), and
        ``DeliveryFailed`` for a record that the log can never take.
        """

    def flush(self, timeout: float) -> int:
        """Wait until all accepted records are settled; return how many are not."""

    def close(self) -> None:
        """Close the publisher. Call ``flush`` first: unsent records are reported as failed."""


class Transaction(Protocol):
    """Records that become durable and visible together or not at all.

    Belongs to one thread. Ends with ``commit`` or ``abort``. If the driver is closed or the
    process dies, it is aborted.
    """

    def offer(self, record: Record) -> None:
        """Add a record. Raises ``DeliveryFailed`` for one that the log can never take."""

    def commit(self, timeout: float) -> list[Receipt]:
        """Make all records visible; return their receipts in the order offered.

        Blocks. Raises ``DeliveryFailed``; then no record is or becomes visible. If the log did
        not answer the commit in time, the error says that the outcome is unknown.
        """

    def abort(self) -> None:
        """Discard all records. Harmless after the transaction has ended."""


class Subscription(Protocol):
    """One member of a group. Belongs to one thread, except for ``close``."""

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to ``limit`` deliveries, in order within a partition.

        Returns as soon as there is at least one, or empty after ``timeout`` seconds.
        A rebalance takes effect only in ``poll``. All earlier deliveries count as settled: a
        partition that is lost in ``poll`` continues elsewhere from its committed position.
        Raises ``TransportUnavailable`` when the log cannot be reached; poll again.
        """

    def commit(self, positions: Positions) -> None:
        """Commit the positions for the group. Blocks until they are durable.

        A position behind the committed one changes nothing. Raises ``CommitRefused``, which
        names the partitions, when one is no longer owned; then no position is committed.
        """

    def seek(self, positions: Positions) -> None:
        """Make ``poll`` continue from ``positions``, whatever was delivered or committed.

        Ignores partitions that are not owned now.
        """

    def close(self) -> None:
        """Leave the group at once, so that another member takes over. Idempotent."""


class Admin(Protocol):
    """Administration of topics and groups. Thread-safe. Every call may block."""

    def create_topic(
        self, name: str, partitions: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None: ...

    def list_topics(self) -> list[str]: ...

    def describe_topic(self, name: str) -> TopicDescription: ...

    def delete_topic(self, name: str) -> None: ...

    def purge_topic(self, name: str) -> None:
        """Delete all records of a topic. Offsets continue from where they were."""

    def list_groups(self) -> list[str]:
        """List the named groups, without those that end with their only member."""

    def describe_group(self, name: str) -> GroupDescription: ...

    def reset_group(self, name: str, positions: Positions) -> None:
        """Set positions, also backwards. Raises ``GroupBusy`` while the group has active members."""


class Driver(abc.ABC):
    """A transport driver, found by URL scheme in ``notifier_kafka.drivers``.

    The constructor keeps ``url``, which has the ``ConfigOpts``, and does no I/O.
    """

    durability: ClassVar[str]
    """What "durable" in clause 1 means for this driver, in one sentence for the documentation."""

    def __init__(self, url: DriverURL) -> None:
        self.url = url

    @property
    def virtual_host(self) -> str | None:
        """The part of the URL that becomes part of topic names; see ``notifier_kafka.wire.topic_names``."""
        return None

    @property
    def default_group(self) -> str | None:
        """The group of a listener without a pool, if the driver's options name one."""
        return None

    @abc.abstractmethod
    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Publisher: ...

    def transaction(self, name: str | None = None) -> Transaction:  # noqa: ARG002 - for subclasses
        """Begin a transaction. Several may be open at once. A driver without transactions keeps this.

        A ``name`` belongs to one process at a time. A process that takes over the name of an
        earlier one aborts what that left open, so that readers do not wait for it.
        """
        raise DeliveryFailed(f"{self.url.transport}:// has no transactions")

    @abc.abstractmethod
    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        """Make a new member of ``group``. With None it has a group of its own that ends with it.

        A topic that does not exist yet is read from its beginning once it appears.
        """

    @abc.abstractmethod
    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        """Return what the topics hold now, or what was written from ``since`` to before ``until``.

        A topic that does not exist has no span, and is no error.
        """

    @abc.abstractmethod
    def read(self, span: Span) -> Iterator[Delivery]:
        """Yield the deliveries of a span in order, without a group."""

    @abc.abstractmethod
    def admin(self) -> Admin: ...

    def on_deleted(self, tell: OnDeleted) -> None:  # noqa: B027 - optional: retention may run outside the driver
        """Call ``tell`` with the records that the retention in this driver deletes from now on.

        An error of ``tell`` is logged and changes nothing: the records are deleted already.
        """

    def trouble(self) -> str | None:
        """Return a text on why records do not reach the log now, or None. May block for some seconds."""
        return None

    @abc.abstractmethod
    def close(self) -> None:
        """Release everything. Waits for running calls in other threads. Idempotent."""
