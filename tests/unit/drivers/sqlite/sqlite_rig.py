"""What the tests of the SQLite driver share: drivers on a file, children, waiting."""

import contextlib
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from oslo_config import cfg

from notifier_kafka.contract.driver import Delivery, Limits, Partition, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.url import TransportURL
from notifier_kafka_drivers.sqlite.driver import SqliteDriver
from notifier_kafka_drivers.sqlite.lock import FileLock
from notifier_kafka_drivers.sqlite.subscription import LogSubscription
from tests.shared.checkout import ROOT

LONG = 60.0


def make_driver(path: object, query: str = "") -> SqliteDriver:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    return SqliteDriver(TransportURL.parse(conf, f"sqlite:///{path or ''}?{query}".rstrip("?")))


@contextlib.contextmanager
def open_driver(path: object, query: str = "") -> Iterator[SqliteDriver]:
    driver = make_driver(path, query)
    try:
        yield driver
    finally:
        driver.close()


def unexpected(record: Record, error: MessagingException) -> None:
    raise AssertionError(f"{record.topic}: {error}")


def publish(driver: SqliteDriver, topic: str, values: Sequence[int], key: bytes | None = b"k") -> None:
    """Publish numbers as values, durably."""
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    for value in values:
        publisher.offer(Record(topic, b"%d" % value, key))
    assert publisher.flush(LONG) == 0
    publisher.close()
    if failures:
        raise failures[0]


def numbers(deliveries: Sequence[Delivery]) -> list[int]:
    return [int(delivery.record.value or b"") for delivery in deliveries]


def read_all(driver: SqliteDriver, topic: str) -> list[Delivery]:
    return [delivery for span in driver.spans([topic]) for delivery in driver.read(span)]


def poll_until(
    subscription: LogSubscription, enough: Callable[[list[Delivery]], bool], limit: int = 1_000
) -> list[Delivery]:
    found: list[Delivery] = []
    deadline = time.monotonic() + LONG
    while not enough(found):
        assert time.monotonic() < deadline, f"after {len(found)} deliveries"
        found += subscription.poll(limit, 0.2)
    return found


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ends(deliveries: Sequence[Delivery]) -> dict[Partition, int]:
    """Where to go on after these."""
    return {delivery.partition: delivery.offset + 1 for delivery in deliveries}


@contextlib.contextmanager
def child(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a function of ``sqlite_child.py`` in a process; kill it at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.drivers.sqlite.sqlite_child", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def suspend(process: subprocess.Popen[str], path: pathlib.Path) -> None:
    """Stop a process, but not in the middle of a write: it would keep the log's lock until it goes on."""
    lock = FileLock(f"{path}-lock")
    assert lock.acquire(LONG)
    process.send_signal(signal.SIGSTOP)
    lock.release()
    lock.close()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()
