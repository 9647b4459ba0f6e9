# ruff: noqa: S101
"""What the tests use: one log, drivers and processes on it, and waiting with a time limit."""

import pathlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence

from notifier_kafka.contract.driver import (
    Admin,
    Delivery,
    Driver,
    Limits,
    Partition,
    Publisher,
    Record,
    Span,
    Start,
    Subscription,
)
from notifier_kafka.errors import MessagingException, OutboxFull, TransportUnavailable
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.process import Child

POLL_SECONDS = 0.2


class Member:
    """A subscription, and all that it has delivered."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.deliveries: list[Delivery] = []

    def poll(self, limit: int = 100, timeout: float = POLL_SECONDS) -> Sequence[Delivery]:
        """Poll once. If the log is unavailable at the moment, return nothing."""
        try:
            deliveries = self.subscription.poll(limit, timeout)
        except TransportUnavailable:
            return []
        self.deliveries += deliveries
        return deliveries

    def values(self) -> list[bytes | None]:
        return [delivery.record.value for delivery in self.deliveries]


class Rig:
    """One log under test. ``close`` releases everything that it made."""

    def __init__(
        self, url: str, config_files: Sequence[str], patience: float, directory: pathlib.Path
    ) -> None:
        self.url = url
        self.patience = patience
        self._config_files = config_files
        self._directory = directory
        self._drivers: list[Driver] = []
        self._children: list[Child] = []
        self.driver = self.connect()

    def connect(self, url: str | None = None) -> Driver:
        """Make another driver on the log, as another process would."""
        driver = child.connect(url or self.url, self._config_files)
        self._drivers.append(driver)
        return driver

    def child(self, verb: str, *rest: object) -> Child:
        """Start a process of ``notifier_kafka.testing.child`` on the log, with the arguments of a verb."""
        files = [text for path in self._config_files for text in ("--config-file", path)]
        started = Child([*files, verb, self.url, *map(str, rest)], self._directory)
        self._children.append(started)
        return started

    def wait_for_output(self, process: Child, word: str, seconds: float | None = None) -> str:
        """Wait until a process has written ``word``; return all its output."""
        self.wait_until(
            lambda: word in process.output() or not process.is_alive(),
            f"{word!r} from a child process",
            seconds,
        )
        assert word in process.output(), f"the child process ended: {process.output()}"
        return process.output()

    def suspend(self, process: Child) -> None:
        """Send SIGSTOP to a process, at a moment when it holds no lock that keeps others from writing."""

        def suspended() -> bool:
            process.send_signal(signal.SIGSTOP)
            try:
                self.publish([Record(self.topic(), b"probe")])
            except (AssertionError, MessagingException):
                process.send_signal(signal.SIGCONT)
                return False
            return True

        self.wait_until(suspended, "a moment to suspend a child process", 3 * self.patience)

    def wait_until(self, condition: Callable[[], object], what: str, seconds: float | None = None) -> None:
        """Wait for a condition, ``patience`` seconds unless told otherwise."""
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        while not condition():
            assert time.monotonic() < deadline, f"timed out waiting for {what}"
            time.sleep(0.01)

    def name(self) -> str:
        return f"conformance-{uuid.uuid4().hex[:12]}"

    def admin(self) -> Admin:
        return self.driver.admin()

    def topic(self, partitions: int = 3) -> str:
        """Create a topic, and wait until the log lists it."""
        name = self.name()
        self.admin().create_topic(name, partitions)
        self.wait_until(lambda: name in self.admin().list_topics(), f"topic {name} to appear")
        return name

    def publish(self, records: Iterable[Record]) -> None:
        """Publish records with a driver of their own, and check that all are delivered."""
        driver = self.connect()
        failures: list[MessagingException] = []
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
        self.offer(publisher, records)
        pending = publisher.flush(self.patience)
        publisher.close()
        driver.close()
        assert (pending, failures) == (0, [])

    def offer(self, publisher: Publisher, records: Iterable[Record]) -> None:
        """Offer records; wait while the outbox is full."""
        for record in records:
            self.wait_until(lambda record=record: _accepted(publisher, record), "room in the outbox")  # type: ignore[misc]

    def contents(self, topic: str) -> list[Delivery]:
        """Read all records of a topic, as a new process would."""
        driver = self.connect()
        try:
            return [delivery for span in driver.spans([topic]) for delivery in driver.read(span)]
        finally:
            driver.close()

    def join(self, topic: str, group: str | None, start: Start = "earliest") -> Member:
        """Join ``group`` with a new driver."""
        return Member(self.connect().subscribe([topic], group, start))

    def poll_for(self, count: int, *members: Member, seconds: float | None = None) -> None:
        """Poll the members in turn until they have ``count`` deliveries together."""

        def enough() -> bool:
            for member in members:
                member.poll()
            return sum(len(member.deliveries) for member in members) >= count

        self.wait_until(enough, f"{count} deliveries", seconds)

    def poll_for_more(self, *members: Member) -> None:
        """Poll a few times more, for deliveries that should not come."""
        for _ in range(5):
            for member in members:
                member.poll()

    def wait_for_assignment(self, group: str, *members: Member) -> None:
        """Poll the members until each owns a partition, and no partition has two owners."""

        def assigned() -> bool:
            for member in members:
                member.poll()
            owned = [parts for parts in self.admin().describe_group(group).members.values() if parts]
            return len(owned) == len(members) and len(frozenset().union(*owned)) == sum(map(len, owned))

        self.wait_until(assigned, f"group {group} to assign partitions to {len(members)} members")

    def run_together(self, *calls: Callable[[], object]) -> list[Exception]:
        """Run calls in threads at the same time; return the errors that they raised."""
        raised: list[Exception] = []
        gate = threading.Barrier(len(calls))

        def run(call: Callable[[], object]) -> None:
            gate.wait()
            try:
                call()
            except Exception as error:  # noqa: BLE001 - the tests check which error it is
                raised.append(error)

        threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.patience)
        assert not any(thread.is_alive() for thread in threads), "a thread did not end"
        return raised

    def close(self) -> None:
        for process in self._children:
            process.end()
        for driver in self._drivers:
            driver.close()


def _accepted(publisher: Publisher, record: Record) -> bool:
    try:
        publisher.offer(record)
    except OutboxFull:
        return False
    return True


def positions_after(deliveries: Iterable[Delivery]) -> dict[Partition, int]:
    """Return the positions that commit ``deliveries``."""
    positions: dict[Partition, int] = {}
    for delivery in deliveries:
        positions[delivery.partition] = max(positions.get(delivery.partition, 0), delivery.offset + 1)
    return positions


def offsets_of(deliveries: Iterable[Delivery]) -> list[tuple[Partition, int]]:
    """Return the partition and offset of each delivery."""
    return [(delivery.partition, delivery.offset) for delivery in deliveries]


def values(deliveries: Iterable[Delivery]) -> list[bytes]:
    """Return the values, sorted."""
    return sorted(delivery.record.value or b"" for delivery in deliveries)


def count_offsets(spans: Iterable[Span]) -> int:
    """Count the offsets in spans."""
    return sum(span.stop - span.start for span in spans)
