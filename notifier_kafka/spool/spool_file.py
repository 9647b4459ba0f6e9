"""One file of a spool: a log of the embedded driver, with two topics of one partition.

``back`` takes what is offered while the bus is away. ``front`` is sent before it, and holds
what the bus's client had taken before and has not delivered. How far the bus has got is a
position in the file, as that of any group.
"""

import functools
import itertools
import logging
import pathlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from oslo_config import cfg

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract import driver, plugins
from notifier_kafka.contract.driver import (
    Delivery,
    Driver,
    Limits,
    OnFailure,
    Partition,
    Record,
    Span,
    make_record,
)
from notifier_kafka.errors import MessagingException
from notifier_kafka.spool import spool_directory

LOG = logging.getLogger(__name__)

SCHEME = "sqlite"
FRONT, BACK = "front", "back"
GROUP = "forwarded"
# Less than a second in all: what a full disk does not take is given up, and memory is free again.
RETRY = 4
PATIENCE = 5.0


Opener = Callable[[pathlib.Path], Driver]


class Chunk(NamedTuple):
    """Some of what is to be sent; ``lost`` records before it went, and nobody was told which."""

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
        self._tells = False
        # By topic: what is being sent, and up to where it was told what else is deleted.
        self._sending: dict[str, range] = {}
        self._told: dict[str, int] = {}
        self._leaving = threading.Lock()
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

    def tell_deleted(self, tell: Callable[[int, Record], None]) -> None:
        """Tell of each record, and its number, that is deleted for lack of space before it is sent."""

        def on_deleted(deliveries: Sequence[Delivery]) -> None:
            for delivery in self._take_leave(deliveries):
                tell(*unwrap(delivery.record))

        self._tells = True
        self._log.on_deleted(on_deleted)

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
            topic = span.partition.topic
            deliveries = list(itertools.islice(self._log.read(span), limit))
            if deliveries:
                stop = deliveries[-1].offset + 1
                with self._leaving:
                    # Some may have been deleted, and told, since they were read.
                    told = self._told.get(topic, 0)
                    deliveries = [each for each in deliveries if each.offset >= told]
                    first = deliveries[0].offset if deliveries else stop
                    lost = self._untold(span, first)
                    self._sending[topic] = range(first, stop)
                return Chunk(topic, [_entry(each) for each in deliveries], stop, lost)
        return None

    def commit(self, chunk: Chunk) -> None:
        """Go on behind ``chunk`` from now on, also in another process once this is durable."""
        with self._leaving:
            self._read_positions()[chunk.topic] = chunk.stop
            self._sending.pop(chunk.topic, None)
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
        # From now on nothing is written, and so nothing deleted.
        self._publisher.close()
        try:
            count = self.waiting().records
        except MessagingException as error:
            LOG.error("What is left in a spool file is not known: %s", error)
            count = 1
        try:
            self._note_told()
        except MessagingException as error:
            LOG.warning("What a spool file dropped is counted again by who takes it: %s", error)
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

    def _take_leave(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Note what is deleted; return what of it was neither sent nor is being sent."""
        with self._leaving:
            positions = self._read_positions()
            gone = [each for each in deliveries if self._is_unsent(each, positions)]
            # In their order, so the last counts.
            self._told |= {each.partition.topic: each.offset + 1 for each in gone}
        return gone

    def _is_unsent(self, delivery: Delivery, positions: dict[str, int]) -> bool:
        topic, offset = delivery.partition.topic, delivery.offset
        return offset >= positions.get(topic, 0) and offset not in self._sending.get(topic, ())

    def _untold(self, span: Span, first: int) -> int:
        """Count what is deleted before the first that is there, and was told by nobody."""
        topic = span.partition.topic
        if not self._tells:
            positions = self._read_positions()
            lost, positions[topic] = span.start - positions.get(topic, 0), span.start
            return lost
        # What could not be sent the last time, and is deleted since.
        again = self._sending.get(topic, range(0))
        return max(0, min(first, again.stop) - again.start)

    def _note_told(self) -> None:
        """Let nobody else count as lost what was told; what was under way may be."""
        held = self._read_positions()
        ends = {
            topic: min(stop, self._sending[topic].start) if topic in self._sending else stop
            for topic, stop in self._told.items()
        }
        told = {Partition(topic, 0): stop for topic, stop in ends.items() if held.get(topic, 0) < stop}
        if told:
            self._log.admin().reset_group(GROUP, told)

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
