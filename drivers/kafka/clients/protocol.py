"""What a client library has to offer to the driver. All policy is above it, in the driver.

A client library is a class that meets ``Client``, found by its entry point in the namespace
``notifier_kafka.kafka_clients``. It is given properties as Apache Kafka spells them, raises only
this package's errors, and connects only in calls that say they block.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from notifier_kafka.contract.driver import (
    Delivery,
    Limits,
    OnFailure,
    Partition,
    Positions,
    Publisher,
    Receipt,
    Record,
)
from notifier_kafka.errors import MessagingException

Properties = Mapping[str, str]

EARLIEST = -2
LATEST = -1

StartOffsets = Callable[[Sequence[Partition]], dict[Partition, int]]
"""Given gained partitions, returns where to start those that shall not start at the group's position."""

Restore = Callable[[str], None]
"""Creates a topic again that seems to be deleted while it is published to. Blocks."""


class AssignedRecord(Record):
    """A record whose partition is chosen already; for any other the client chooses as Java does."""

    number: int


class Replicas(NamedTuple):
    """Where a partition is kept; ``leader`` is -1 while there is none."""

    partition: Partition
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Consumer(Protocol):
    """One member of a group. Never used by two threads at once."""

    owned: set[Partition]

    def poll(self, limit: int, timeout: float) -> list[Delivery]:
        """Return what there is, at most ``limit``; wait for ``timeout`` while there is none.

        Joins the group, and rejoins it. Partitions come and go in here and nowhere else.
        """

    def commit(self, positions: Positions) -> None:
        """Record positions for the group; raises ``CommitRefused`` when no longer a member."""

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Fetch the group's positions, for those partitions that have one."""

    def seek(self, partition: Partition, offset: int) -> None: ...

    def topic_ids(self) -> dict[Partition, str]:
        """Tell the ids of the topics that owned partitions are of. Does not block.

        Only those that were found since the last call, which may take seconds.
        """

    def is_connected(self) -> bool:
        """Tell whether there is a connection to a broker, as far as known. Does not block."""

    def is_dead(self) -> bool:
        """Tell whether it will never reach a broker again, although others do. Does not block."""

    def pause(self) -> None:
        """Deliver nothing until ``resume``: polls until then only keep the membership."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """Leave the group and close the connections."""


class Reader(Protocol):
    """Reads one partition without a group."""

    def poll(self, limit: int, timeout: float) -> list[Delivery]: ...

    def position(self) -> int:
        """Return the offset up to which there is no record that was not handed over."""

    def close(self) -> None: ...


class Admin(Protocol):
    """Requests to the brokers. Thread-safe; every call blocks for seconds at most."""

    def topics(self) -> list[str]: ...

    def partitions(self, topic: str) -> list[Replicas]: ...

    def settings(self, topic: str) -> dict[str, str]:
        """Return the settings of the topic itself, without the brokers' defaults."""

    def create(self, topic: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None: ...

    def delete(self, topic: str) -> None: ...

    def truncate(self, positions: Positions) -> None:
        """Delete the records before the positions."""

    def offsets(self, moments: Mapping[Partition, int]) -> dict[Partition, int]:
        """Find offsets by EARLIEST, LATEST or milliseconds since the epoch; -1 where none is so late."""

    def groups(self) -> list[str]: ...

    def members(self, group: str) -> dict[str, frozenset[Partition]]: ...

    def positions(self, group: str) -> dict[Partition, int]: ...

    def move(self, group: str, positions: Positions) -> None: ...

    def close(self) -> None: ...


class Transactor(Protocol):
    """A producer of transactions. Never used by two threads at once, nor after an error.

    Every call blocks until its deadline, by the monotonic clock, at most.
    """

    def begin(self, deadline: float) -> None: ...

    def send(self, records: Sequence[Record], deadline: float) -> list[Receipt | MessagingException | None]:
        """Send records and return the outcome of each; None where it is not known in time."""

    def commit(self, deadline: float) -> None:
        """Make them visible; raises ``TransportUnavailable`` when there was no answer."""

    def abort(self, deadline: float) -> None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """A client library. The constructor connects to nothing."""

    def __init__(self, properties: Properties) -> None:
        """Keep the properties that all connections share; raise for unknown ones."""

    def publisher(
        self, properties: Properties, on_failure: OnFailure, limits: Limits, restore: Restore
    ) -> Publisher:
        """Make a publisher to topics that exist; ``restore`` is called from the publisher's own thread."""

    def transactor(self, properties: Properties) -> Transactor:
        """Make a producer for the transactional id in ``properties``."""

    def consumer(
        self, properties: Properties, topics: Sequence[str], start_offsets: StartOffsets | None
    ) -> Consumer:
        """Make a member of the group in ``properties``. Blocks until there is a connection."""

    def reader(self, properties: Properties, partition: Partition, offset: int) -> Reader:
        """Make a reader. Blocks until there is a connection."""

    def admin(self) -> Admin:
        """Connect for administration. Blocks until there is a connection."""
