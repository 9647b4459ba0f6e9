"""Partitioners of users: a function chooses the partition of a record.

It is called above the client libraries, so that both put a key into the same partition, and in the call
that offers the record, so that the caller gets its errors. Only the first record of a topic waits for the
number of partitions, and its error is reported later.
"""

from collections.abc import Callable
from typing import NamedTuple

from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DeliveryFailed, DriverNotFound

from ..clients.protocol import AssignedRecord

NAMESPACE = "notifier_kafka.partitioners"
BUILT_IN = "murmur2"

Partitioner = Callable[[bytes | None, int], int]
"""Given a key and the number of partitions, returns one of them, from 0 on."""

AssignPartition = Callable[[Record, int], Record]
"""Gives a record one of so many partitions, or leaves that to the client; raises ``DeliveryFailed``."""

Ensure = Callable[[str], int]
"""Makes sure that a topic exists; returns how many partitions it has. Blocks."""


class Topics(NamedTuple):
    """How topics are created, and records assigned to their partitions."""

    ensure: Ensure
    assign: AssignPartition


def load(name: str) -> AssignPartition:
    """Make an ``AssignPartition`` of the function behind an entry point."""
    if name == BUILT_IN:
        return leave_to_client
    try:
        partitioner = plugins.load(NAMESPACE, name)
    except DriverNotFound:
        known = ", ".join(sorted({BUILT_IN, *plugins.names(NAMESPACE)}))
        text = f"no such partitioner: [drivers_kafka] partitioner is one of {known}"
        raise DriverNotFound(name, text) from None
    return assigning(name, partitioner)


def leave_to_client(record: Record, _count: int) -> Record:
    """Leave the choice to the client library, which does as Java does: murmur2 of the key."""
    return record


def assigning(name: str, partitioner: Partitioner) -> AssignPartition:
    """Make an ``AssignPartition`` of a function, whatever that raises or returns."""

    def assign(record: Record, count: int) -> Record:
        try:
            number = partitioner(record.key, count)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise DeliveryFailed(f"topic {record.topic}: partitioner {name} raised {reason}") from error
        if not isinstance(number, int) or not 0 <= number < count:
            raise DeliveryFailed(
                f"topic {record.topic}: partitioner {name} returned {number!r}: "
                f"there are {count} partitions, from 0 on"
            )
        assigned = AssignedRecord(*record)
        assigned.number = number
        return assigned

    return assign
