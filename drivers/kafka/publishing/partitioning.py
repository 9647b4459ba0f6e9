"""Custom partitioners: which partition a record goes to, asked of a function of the user's.

It is asked above the client libraries, so that both put a key into the same place, and in the
call that offers the record, so that its errors reach whoever offered it. Only the record that
makes its topic known waits for the number of partitions, and is told later.
"""

from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DeliveryFailed, DriverLoadFailure, DriverNotFound

from ..clients.protocol import Placed

NAMESPACE = "notifier_kafka.partitioners"
BUILT_IN = "murmur2"

Partitioner = Callable[[bytes | None, int], int]
"""Given a key and the number of partitions, returns one of them, from 0 on."""

Place = Callable[[Record, int], Record]
"""Gives a record its partition of so many, or lets the client choose; raises ``DeliveryFailed``."""

Ensure = Callable[[str], int]
"""Makes sure that a topic exists; returns how many partitions it has. Blocks."""


class Topics(NamedTuple):
    """How topics come to be there, and records into their partitions."""

    ensure: Ensure
    place: Place


def load(name: str) -> Place:
    """Make a ``Place`` of what an entry point names."""
    if name == BUILT_IN:
        return leave
    found = {entry.name: entry for entry in metadata.entry_points(group=NAMESPACE)}
    if name not in found:
        known = ", ".join(sorted({BUILT_IN, *found}))
        raise DriverNotFound(name, f"no such partitioner: [drivers_kafka] partitioner is one of {known}")
    try:
        return placing(name, found[name].load())
    except (ImportError, AttributeError) as error:
        raise DriverLoadFailure(name, f"{found[name].value} does not load: {error}") from error


def leave(record: Record, _count: int) -> Record:
    """Leave it to the client library, which does as Java does: murmur2 of the key."""
    return record


def placing(name: str, partitioner: Partitioner) -> Place:
    """Make a ``Place`` of a function, whatever that may do."""

    def place(record: Record, count: int) -> Record:
        try:
            number = partitioner(record.key, count)
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise DeliveryFailed(f"topic {record.topic}: partitioner {name} raised {said}") from error
        if not isinstance(number, int) or not 0 <= number < count:
            raise DeliveryFailed(
                f"topic {record.topic}: partitioner {name} returned {number!r}: "
                f"there are {count} partitions, from 0 on"
            )
        placed = Placed(*record)
        placed.number = number
        return placed

    return place
