"""One file of a spool: a log of the embedded driver, with two topics of one partition.

``back`` takes what is offered while the bus is away. ``front`` is sent before it, and holds
what the bus's client had taken before and has not delivered. How far the bus has got is a
position in the file, as that of any group.
"""

import functools
import itertools
import logging
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from oslo_config import cfg

from notifier_kafka import driver, plugins, spool_directory
from notifier_kafka.driver import Delivery, Driver, Limits, OnFailure, Partition, Record, Span, make_record
from notifier_kafka.errors import MessagingException
from notifier_kafka.url import TransportURL

LOG = logging.getLogger(__name__)

SCHEME = "sqlite"
FRONT, BACK = "front", "back"
GROUP = "forwarded"
# Less than a second in all: what a full disk does not take is given up, and memory is free again.
RETRY = 4
PATIENCE = 5.0


Opener = Callable[[pathlib.Path], Driver]


class Chunk(NamedTuple):
    """Some of what is to be sent; ``lost`` records before it were deleted for lack of space."""

    topic: str
    entries: Sequence[tuple[int, Record, float]]
    stop: int
    lost: int


class Waiting(NamedTuple):
    """What a file holds that is not sent; ``oldest`` is when the first was written."""

    records: int
    oldest: float | None


class SpoolFile:
    """A file that this process owns. ``keep`` may be called by any thread, the rest by one."""

    def __init__(
        self, owned: spool_directory.Owned, log: Driver, limits: Limits, on_failure: OnFailure
    ) -> None:
        self._owned = owned
        self._log = log
        self._positions: dict[str, int] | None = None
        self._publisher = log.publisher(
            lambda record, why: on_failure(unwrap(record)[1], why), limits._replace(retry=RETRY)
        )
        self.kept = 0

    @property
    def path(self) -> pathlib.Path:
        return self._owned.path

    def keep(self, record: Record) -> None:
        """Take a record without waiting for the disk. Raises ``OutboxFull``."""
        self._publisher.offer(wrap(BACK, 0, record))
        self.kept += 1

    def unwritten(self, timeout: float) -> int:
        """Wait until what was kept is on the disk; return how many records are not."""
        return self._publisher.flush(timeout)

    def put_before(self, records: Sequence[tuple[int, Record]]) -> None:
        """Write numbered records to the front, durably; all or none."""
        transaction = self._log.transaction()
        for number, record in records:
            transaction.offer(wrap(FRONT, number, record))
        transaction.commit(PATIENCE)

    def read(self, limit: int) -> Chunk | None:
        """Return what is to be sent next, in order."""
        for span in self._unsent():
            position = self._read_positions().get(span.partition.topic, 0)
            deliveries = list(itertools.islice(self._log.read(span), limit))
            if deliveries:
                stop = deliveries[-1].offset + 1
                entries = [_entry(delivery) for delivery in deliveries]
                return Chunk(span.partition.topic, entries, stop, span.start - position)
        return None

    def commit(self, chunk: Chunk) -> None:
        """Go on behind ``chunk`` from now on, also in another process once this is durable."""
        self._read_positions()[chunk.topic] = chunk.stop
        self._log.admin().reset_group(GROUP, {Partition(chunk.topic, 0): chunk.stop})

    def unsent(self) -> Iterator[Record]:
        """Read all that is not sent."""
        for span in self._unsent():
            for delivery in self._log.read(span):
                yield unwrap(delivery.record)[1]

    def waiting(self) -> Waiting:
        """Say what is not sent, also when that could not be noted in the file."""
        return _waiting(self._log, self._unsent())

    def remove(self) -> None:
        """Delete the file."""
        self._log.close()
        self._owned.remove()

    def leave(self) -> int:
        """Let go of the file; return how many records it has for the process that takes it next."""
        try:
            count = self.waiting().records
        except MessagingException as error:
            LOG.error("What is left in a spool file is not known: %s", error)
            count = 1
        self._log.close()
        if count:
            self._owned.release()
        else:
            self._owned.remove()
        return count

    def set_aside(self) -> None:
        """Leave the file to a person: it cannot be read."""
        self._log.close()
        self._owned.set_aside()

    def abandon(self) -> None:
        """Let go of it in a child process: the file is the parent's."""
        self._owned.release()

    def _read_positions(self) -> dict[str, int]:
        if self._positions is None:
            self._positions = _positions(self._log)
        return self._positions

    def _unsent(self) -> list[Span]:
        return _unsent(self._log, self._read_positions())


def opener(conf: cfg.ConfigOpts, most: int) -> Opener:
    """Load what opens spool files, of ``most`` bytes. The options of a log that is the bus are not theirs."""
    kind: type[Driver] = plugins.load(driver.NAMESPACE, SCHEME)
    query = {
        "partitions": "1",
        "synchronous": "full",
        "retention_seconds": "0",
        "retention_bytes": str(most),
        "busy_timeout": str(PATIENCE),
        # What goes to the spool waits for its bus anyway, and a write costs a hundred calls.
        "linger": "0.02",
    }
    return lambda path: kind(TransportURL(conf, SCHEME, str(path), query=query))


def waiting(log: Driver) -> Waiting:
    """Say what a spool file holds that is not sent."""
    return _waiting(log, _unsent(log, _positions(log)))


def _waiting(log: Driver, spans: Sequence[Span]) -> Waiting:
    firsts = [delivery.timestamp for span in spans for delivery in itertools.islice(log.read(span), 1)]
    return Waiting(sum(span.stop - span.start for span in spans), min(firsts, default=None))


def wrap(topic: str, number: int, record: Record) -> Record:
    """Make a record of the spool of one of the bus."""
    bus_topic, value, key, headers = record
    made: Record = make_record((topic, value, key, (_origin(number, bus_topic), *headers)))
    return made


def unwrap(record: Record) -> tuple[int, Record]:
    """Make the record of the bus again, with its number."""
    _, value, key, headers = record
    number, _, bus_topic = headers[0][1].decode().partition(" ")
    return int(number), Record(bus_topic, value, key, headers[1:])


@functools.lru_cache(1024)
def _origin(number: int, topic: str) -> tuple[str, bytes]:
    return "origin", f"{number} {topic}".encode()


def _entry(delivery: Delivery) -> tuple[int, Record, float]:
    return *unwrap(delivery.record), delivery.timestamp


def _positions(log: Driver) -> dict[str, int]:
    found = log.admin().describe_group(GROUP).positions
    return {partition.topic: position for partition, position in found.items()}


def _unsent(log: Driver, positions: dict[str, int]) -> list[Span]:
    spans = [
        Span(partition, max(start, positions.get(partition.topic, 0)), stop)
        for partition, start, stop in log.spans([FRONT, BACK])
    ]
    return [span for span in spans if span.start < span.stop]
