# ruff: noqa: S101
"""What the tests of the suite stand on: one log, drivers and processes on it, deadlines."""

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

POLL = 0.2


class Member:
    """A subscription and all that it delivered."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.deliveries: list[Delivery] = []

    def poll(self, limit: int = 100, timeout: float = POLL) -> Sequence[Delivery]:
        """Poll once; a log that cannot be reached at the moment counts as empty."""
        try:
            deliveries = self.subscription.poll(limit, timeout)
        except TransportUnavailable:
            return []
        self.deliveries += deliveries
        return deliveries

    def values(self) -> list[bytes | None]:
        return [delivery.record.value for delivery in self.deliveries]


class Rig:
    """One log under test. Everything that it hands out is released by ``close``."""

    def __init__(
        self, url: str, config_files: Sequence[str], patience: float, directory: pathlib.Path
    ) -> None:
        self.url = url
        self.patience = patience
        self._config_files = config_files
        self._directory = directory
        self._drivers: list[Driver] = []
        self._children: list[Child] = []
        self.home = self.connect()

    def connect(self, url: str | None = None) -> Driver:
        """Build one more driver on the log, as another process would have."""
        driver = child.connect(url or self.url, self._config_files)
        self._drivers.append(driver)
        return driver

    def child(self, verb: str, *rest: object) -> Child:
        """Start a process on the log; ``rest`` are the arguments of the verb."""
        files = [text for path in self._config_files for text in ("--config-file", path)]
        started = Child([*files, verb, self.url, *map(str, rest)], self._directory)
        self._children.append(started)
        return started

    def await_word(self, process: Child, word: str, seconds: float | None = None) -> str:
        """Wait until a process said ``word``; return all that it said."""
        self.until(lambda: word in process.said() or not process.alive(), f"a child's {word!r}", seconds)
        assert word in process.said(), f"the child ended: {process.said()}"
        return process.said()

    def stop(self, process: Child) -> None:
        """Stop a process, but not while it keeps others from writing, as it may over a file."""

        def stopped() -> bool:
            process.send(signal.SIGSTOP)
            try:
                self.publish([Record(self.topic(), b"is there anybody?")])
            except (AssertionError, MessagingException):
                process.send(signal.SIGCONT)
                return False
            return True

        self.until(stopped, "a moment to stop a child", 3 * self.patience)

    def until(self, condition: Callable[[], object], what: str, seconds: float | None = None) -> None:
        """Wait for a condition, up to the suite's patience."""
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.01)

    def name(self) -> str:
        return f"conformance-{uuid.uuid4().hex[:12]}"

    def admin(self) -> Admin:
        return self.home.admin()

    def topic(self, partitions: int = 3) -> str:
        """Create a topic and wait until the log shows it."""
        name = self.name()
        self.admin().create_topic(name, partitions)
        self.until(lambda: name in self.admin().list_topics(), f"topic {name} to appear")
        return name

    def publish(self, records: Iterable[Record]) -> None:
        """Publish and see every record through, with a driver that is closed afterwards."""
        driver = self.connect()
        failures: list[MessagingException] = []
        publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
        self.offer(publisher, records)
        pending = publisher.flush(self.patience)
        publisher.close()
        driver.close()
        assert (pending, failures) == (0, [])

    def offer(self, publisher: Publisher, records: Iterable[Record]) -> None:
        """Offer records, waiting where there is no room."""
        for record in records:
            self.until(lambda record=record: _accepted(publisher, record), "room in the outbox")  # type: ignore[misc]

    def contents(self, topic: str) -> list[Delivery]:
        """Read all that a topic holds, as a new process would."""
        driver = self.connect()
        try:
            return [delivery for span in driver.spans([topic]) for delivery in driver.read(span)]
        finally:
            driver.close()

    def join(self, topic: str, group: str | None, start: Start = "earliest") -> Member:
        """Let a driver of its own become a member of ``group``."""
        return Member(self.connect().subscribe([topic], group, start))

    def gather(self, count: int, *members: Member, seconds: float | None = None) -> None:
        """Poll the members in turn until they have ``count`` deliveries together."""

        def enough() -> bool:
            for member in members:
                member.poll()
            return sum(len(member.deliveries) for member in members) >= count

        self.until(enough, f"{count} deliveries", seconds)

    def linger(self, *members: Member) -> None:
        """Poll on for a while, for what should not come."""
        for _ in range(5):
            for member in members:
                member.poll()

    def settle(self, group: str, *members: Member) -> None:
        """Poll the members until each owns something and nothing is owned twice."""

        def shared() -> bool:
            for member in members:
                member.poll()
            owned = [parts for parts in self.admin().describe_group(group).members.values() if parts]
            return len(owned) == len(members) and len(frozenset().union(*owned)) == sum(map(len, owned))

        self.until(shared, f"group {group} to settle on {len(members)} members")

    def together(self, *calls: Callable[[], object]) -> list[Exception]:
        """Run calls in threads at once; return what they raised."""
        raised: list[Exception] = []
        gate = threading.Barrier(len(calls))

        def run(call: Callable[[], object]) -> None:
            gate.wait()
            try:
                call()
            except Exception as error:  # noqa: BLE001 - which error it is, is what the tests ask
                raised.append(error)

        threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.patience)
        assert not any(thread.is_alive() for thread in threads), "a thread did not come back"
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


def after(deliveries: Iterable[Delivery]) -> dict[Partition, int]:
    """Return the positions that cover ``deliveries``."""
    positions: dict[Partition, int] = {}
    for delivery in deliveries:
        positions[delivery.partition] = max(positions.get(delivery.partition, 0), delivery.offset + 1)
    return positions


def places(deliveries: Iterable[Delivery]) -> list[tuple[Partition, int]]:
    """Return where each delivery lies."""
    return [(delivery.partition, delivery.offset) for delivery in deliveries]


def values(deliveries: Iterable[Delivery]) -> list[bytes]:
    """Return the values, in an order that can be compared."""
    return sorted(delivery.record.value or b"" for delivery in deliveries)


def held(spans: Iterable[Span]) -> int:
    """Count the offsets of spans."""
    return sum(span.stop - span.start for span in spans)
