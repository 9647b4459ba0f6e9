"""The seam below which client libraries differ. All policy is above it, in the driver.

A client library is a class that meets ``Client``, found by name in the namespace
``notifier_kafka.kafka_clients``. It is given properties as Apache Kafka spells them, raises
this package's errors only, and connects in the calls that say they block, never before.
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

Place = Callable[[Sequence[Partition]], dict[Partition, int]]
"""Asked for partitions that became ours: where to begin, for those that have a say in it."""

Restore = Callable[[str], None]
"""Makes a topic again that seems to have gone while it was published to. Blocks."""


class Placed(Record):
    """A record whose partition is chosen already; any other gets the one that its key has in Java."""

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

    def made_again(self) -> set[Partition]:
        """Name what is owned, and since last asked of another topic of that name. Does not block.

        It may take seconds until that is known, and is told once.
        """

    def reaches(self) -> bool:
        """Tell whether there is a connection to a broker, as far as known. Does not block."""

    def forgotten(self) -> bool:
        """Tell whether it will never reach a broker again, although others do. Does not block."""

    def hold(self) -> None:
        """Deliver nothing until ``proceed``: polls until then only keep the membership."""

    def proceed(self) -> None: ...

    def close(self) -> None:
        """Leave the group and let go of the connections."""


class Reader(Protocol):
    """Reads one partition without a group."""

    def poll(self, limit: int, timeout: float) -> list[Delivery]: ...

    def position(self) -> int:
        """Return the offset up to which everything was handed over or is no record."""

    def close(self) -> None: ...


class Admin(Protocol):
    """Questions and orders to the brokers. Thread-safe; every call blocks for seconds at most."""

    def topics(self) -> list[str]: ...

    def partitions(self, topic: str) -> list[Replicas]: ...

    def settings(self, topic: str) -> dict[str, str]:
        """Return the settings that are the topic's own, not the brokers'."""

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
    """A producer of transactions. Never used by two threads at once, and no more after an error.

    Every step blocks until its deadline, by the monotonic clock, at most.
    """

    def begin(self, deadline: float) -> None: ...

    def send(self, records: Sequence[Record], deadline: float) -> list[Receipt | MessagingException | None]:
        """Send records and say what became of each; None is not known in time."""

    def commit(self, deadline: float) -> None:
        """Make them visible; raises ``TransportUnavailable`` when that was not answered."""

    def abort(self, deadline: float) -> None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """A client library. The constructor connects to nothing."""

    def __init__(self, properties: Properties) -> None:
        """Keep the properties that all connections share; refuse those that nobody knows."""

    def publisher(
        self, properties: Properties, on_failure: OnFailure, limits: Limits, restore: Restore
    ) -> Publisher:
        """Make a publisher to topics that exist; ``restore`` is called from a thread of its own."""

    def transactor(self, properties: Properties) -> Transactor:
        """Make a producer for the transactional id in ``properties``."""

    def consumer(self, properties: Properties, topics: Sequence[str], place: Place | None) -> Consumer:
        """Make a member of the group in ``properties``. Blocks until there is a connection."""

    def reader(self, properties: Properties, partition: Partition, offset: int) -> Reader:
        """Make a reader. Blocks until there is a connection."""

    def admin(self) -> Admin:
        """Connect for administration. Blocks until there is a connection."""
