"""The contract of a transport driver.

A driver is a durable log: topics of partitions of records numbered by offset.
It holds no policy and knows no notification. What crosses the seam is frozen.

The clauses, each a test of that number in ``notifier_kafka.testing.conformance``:

1. A record reported neither failed nor pending after ``flush`` is durable at the
   level the driver declares. There is no silent drop.
2. Order is kept within (topic, key) as offered.
3. A subscription never yields an offset twice, unless it lost and regained the
   partition or was told to seek.
4. ``commit`` is cumulative, never moves back, and for a partition no longer
   owned raises ``CommitRefused`` and changes nothing.
5. What was not committed goes to another member after ``close()`` or after the
   owner dies.
6. Groups are independent; within a group a partition has one owner.
7. Only this package's errors leave a driver. Each carries ``retriable``.
8. Publishing, ``spans`` and ``read`` are thread-safe. A subscription belongs to
   one thread; ``close()`` from another thread is safe.
9. ``poll`` returns within its timeout; constructors and imports do no I/O;
   ``read`` ends when past ``stop``, even over gaps.
10. The records of a transaction become visible together, in the order offered within
    (topic, key), or not at all. A driver need not have transactions.

Intentionally not here: acknowledging or refusing one message, batching, filters,
priorities, JSON, threads of the listener, feature flags.
"""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import DeliveryFailed, MessagingException

NAMESPACE = "notifier_kafka.drivers"
"""Where drivers are found, by URL scheme."""

Headers = tuple[tuple[str, bytes], ...]


# NamedTuples rather than frozen dataclasses: one is built for every notification,
# and a frozen dataclass costs three times as much to build.
class Record(NamedTuple):
    """Bytes for a topic. ``value`` None is a tombstone."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


class Partition(NamedTuple):
    topic: str
    number: int


class Delivery(NamedTuple):
    """A record handed over with its position. ``timestamp`` is seconds since the epoch."""

    record: Record
    partition: Partition
    offset: int
    timestamp: float


class Receipt(NamedTuple):
    """Where a record lies, durably."""

    partition: Partition
    offset: int


class Span(NamedTuple):
    """The offsets ``start`` to ``stop``, the latter not included."""

    partition: Partition
    start: int
    stop: int


class Limits(NamedTuple):
    """What a publisher holds at most before ``offer`` raises, and how it retries.

    ``retry`` is how often a record is tried again after a retriable error, -1 for ever.
    It is asked of the driver because only below ``offer`` can a record be tried again
    without being overtaken by those behind it (clause 2).
    """

    records: int = 100_000
    bytes: int = 64 * 1024 * 1024
    retry: int = -1


# What the constructors of these do, without their Python code: for the loops that make one
# for every record.
make_record: partial[Any] = partial(tuple.__new__, Record)
make_delivery: partial[Any] = partial(tuple.__new__, Delivery)
make_receipt: partial[Any] = partial(tuple.__new__, Receipt)


class TopicDescription(NamedTuple):
    """``spans`` are what each partition holds now."""

    name: str
    spans: tuple[Span, ...]
    details: Mapping[str, str]


class GroupDescription(NamedTuple):
    """``positions`` are committed; ``lag`` is how many records the group still has to read.

    That is of every partition of its topics: those that it has a position in or a member of
    its holds. One without a position counts from where it begins.
    """

    name: str
    members: Mapping[str, frozenset[Partition]]
    positions: Mapping[Partition, int]
    lag: Mapping[Partition, int]


Positions = Mapping[Partition, int]
"""The next offset to read, by partition."""

Start = Literal["earliest", "latest"] | float
"""Where a group without a position begins; a float is seconds since the epoch."""

OnFailure = Callable[[Record, MessagingException], None]
"""Called from a thread of the driver's for a record that will not become durable."""

OnDeleted = Callable[[Sequence[Delivery]], None]
"""Called from a thread of the driver's with records that its retention has deleted."""

OnSettled = Callable[[Receipt | MessagingException], None]
"""Called once, from a thread of the driver's, when the fate of one record is known."""


class Publisher(Protocol):
    """Hands records to the log. Thread-safe."""

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        """Hand ``record`` over without blocking on I/O.

        On return the record is accepted: it becomes durable, or is reported once, to
        ``on_settled`` when given and else to the publisher's ``on_failure``.
        Raises ``OutboxFull`` when there is no room (nothing was accepted), and
        ``DeliveryFailed`` for a record that the log can never take.
        """

    def flush(self, timeout: float) -> int:
        """Wait until all that was accepted is settled; return how many records are not."""

    def close(self) -> None:
        """Give up the publisher. Call ``flush`` first: what is unsent is reported failed."""


class Transaction(Protocol):
    """Records that become durable and visible together or not at all.

    Belongs to one thread. Ends with ``commit`` or ``abort``; closing the driver or the
    death of the process aborts it.
    """

    def offer(self, record: Record) -> None:
        """Add a record. Raises ``DeliveryFailed`` for one that the log can never take."""

    def commit(self, timeout: float) -> list[Receipt]:
        """Make all records visible; return where they lie, in the order offered.

        Blocks. Raises ``DeliveryFailed``, and then none of them is or becomes visible; when
        the log was told to and gave no answer in time, the error says that it may be either.
        """

    def abort(self) -> None:
        """Give all records up. Harmless after the transaction has ended."""


class Subscription(Protocol):
    """One member of a group. Belongs to one thread, except for ``close``."""

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to ``limit`` deliveries, in order within a partition.

        Returns as soon as there is at least one, else empty after ``timeout`` seconds.
        Partitions change hands only in here. What the caller polled before is taken
        as settled: a partition given up in ``poll`` goes on from its committed position.
        Raises ``TransportUnavailable`` when the log cannot be reached; poll again.
        """

    def commit(self, positions: Positions) -> None:
        """Record the positions durably for the group. Blocks until they are.

        A position behind the one that is recorded changes nothing. Raises
        ``CommitRefused``, naming the partitions, when one is no longer owned, and
        then none of the positions is recorded.
        """

    def seek(self, positions: Positions) -> None:
        """Let ``poll`` go on from ``positions``, whatever was delivered or committed.

        A partition not owned at the moment is left alone.
        """

    def close(self) -> None:
        """Leave the group at once, so that another member goes on. Idempotent."""


class Admin(Protocol):
    """The second interface: topics and groups. Thread-safe; every call may block."""

    def create_topic(
        self, name: str, partitions: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None: ...

    def list_topics(self) -> list[str]: ...

    def describe_topic(self, name: str) -> TopicDescription: ...

    def delete_topic(self, name: str) -> None: ...

    def purge_topic(self, name: str) -> None:
        """Delete all records of a topic. Offsets go on from where they were."""

    def list_groups(self) -> list[str]:
        """List the groups that have a name, not those that end with their one member."""

    def describe_group(self, name: str) -> GroupDescription: ...

    def reset_group(self, name: str, positions: Positions) -> None:
        """Set positions, also backwards. Raises ``GroupBusy`` while members are live."""


class Driver(abc.ABC):
    """A transport driver, found by URL scheme in ``notifier_kafka.drivers``.

    The constructor keeps ``url`` (which carries the ``ConfigOpts``) and does no I/O.
    """

    durability: ClassVar[str]
    """What clause 1 means here, in one sentence for the documentation."""

    def __init__(self, url: DriverURL) -> None:
        self.url = url

    @property
    def virtual_host(self) -> str | None:
        """The part of the URL that belongs into topic names; see ``notifier_kafka.wire.topic_names``."""
        return None

    @property
    def default_group(self) -> str | None:
        """The group of a listener without a pool, where the driver's options name one."""
        return None

    @abc.abstractmethod
    def publisher(self, on_failure: OnFailure, limits: Limits = Limits()) -> Publisher: ...

    def transaction(self, name: str | None = None) -> Transaction:  # noqa: ARG002 - who overrides it has use for it
        """A new transaction. Several may be open at once. A driver without any leaves this as it is.

        A name is for one process at a time, which goes on where another ended: once this
        returns, what that one left open by the name is aborted, and nobody has to wait for it.
        """
        raise DeliveryFailed(f"{self.url.transport}:// has no transactions")

    @abc.abstractmethod
    def subscribe(self, topics: Sequence[str], group: str | None, start: Start) -> Subscription:
        """A new member of ``group``; None is a group of its own that ends with it.

        A topic that does not exist is read from its beginning once it appears.
        """

    @abc.abstractmethod
    def spans(
        self, topics: Sequence[str], since: float | None = None, until: float | None = None
    ) -> list[Span]:
        """What the topics hold now, or what they took from ``since`` to before ``until``.

        A topic that is not there holds nothing: no span, and no error.
        """

    @abc.abstractmethod
    def read(self, span: Span) -> Iterator[Delivery]:
        """The deliveries of a span, in order, without a group."""

    @abc.abstractmethod
    def admin(self) -> Admin: ...

    def on_deleted(self, tell: OnDeleted) -> None:  # noqa: B027 - whose log is kept by others has nothing to tell
        """Tell of what the retention that runs in this driver deletes from now on.

        What ``tell`` raises is logged, and changes nothing: the records are gone by then.
        """

    def trouble(self) -> str | None:
        """What keeps records from the log now, as far as can be told; for people. Blocks for seconds."""
        return None

    @abc.abstractmethod
    def close(self) -> None:
        """Release everything. Waits for calls under way in other threads. Idempotent."""
