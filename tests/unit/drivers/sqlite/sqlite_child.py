"""Processes for the tests of the SQLite driver: ``sqlite_child.py FUNCTION ARGUMENT...``."""

import os
import resource
import select
import struct
import sys
import threading
import time

from notifier_kafka.contract.driver import Limits, Receipt, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka_drivers.sqlite import connections
from notifier_kafka_drivers.sqlite.appender import Appender
from notifier_kafka_drivers.sqlite.driver import SqliteDriver
from notifier_kafka_drivers.sqlite.retention import Retention, RetentionLimits
from tests.unit.drivers.sqlite.sqlite_rig import (
    ends,
    make_driver,
    numbers,
    open_driver,
    publish,
    read_all,
    unexpected,
)


def say(text: object) -> None:
    print(text, flush=True)


def hold(path: str) -> None:
    """Keep the turn to write until killed."""
    driver = make_driver(path)
    with driver._log.writing():
        say("held")
        time.sleep(3600)


def fork_and_hold(path: str) -> None:
    """Keep the turn to write and have a child, until killed."""
    driver = make_driver(path)
    with driver._log.writing():
        pid = os.fork()
        if pid:
            say(pid)
        time.sleep(3600)


def write_endlessly(path: str) -> None:
    """Publish one number after another; say each when it is durable."""
    driver = make_driver(path)
    publisher = driver.publisher(unexpected, Limits(records=100))
    number = 0

    def offer(value: int) -> None:
        def settled(outcome: object) -> None:
            if isinstance(outcome, Receipt):
                say(value)

        publisher.offer(Record("t", b"%d" % value, b"k"), settled)

    while True:
        if publisher.flush(0) < 50:
            offer(number)
            number += 1


def listen(path: str, group: str, query: str) -> None:
    """Poll for ever; say what was committed."""
    driver = make_driver(path, query)
    subscription = driver.subscribe(["t"], group, "earliest")
    while True:
        found = subscription.poll(10, 0.2)
        if found:
            subscription.commit(ends(found))
            say(" ".join(map(str, numbers(found))))


def own(path: str, group: str, query: str) -> None:
    """Poll once, say what came, commit nothing, then work until killed."""
    driver = make_driver(path, query)
    subscription = driver.subscribe(["t"], group, "earliest")
    say(len(subscription.poll(1_000, 30)))
    time.sleep(3600)


def fill(path: str) -> None:
    """Publish into a file that may not grow, then let it grow."""
    driver = make_driver(path)
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    publisher.offer(Record("t", b"-1", b"k"))
    assert publisher.flush(30) == 0
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    for number in range(2_000):
        publisher.offer(Record("t", b"%d" % number, b"k", (("pad", bytes(1_000)),)))
    waiting = publisher.flush(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    left = publisher.flush(30)
    print(bool(waiting), left, len(failures), numbers(read_all(driver, "t")) == list(range(-1, 2_000)))
    driver.close()


def fork(path: str) -> None:
    """Publish on both sides of a fork, the child ending as programs do."""
    driver = make_driver(path)
    publish(driver, "t", range(10), b"parent")
    subscription = driver.subscribe(["t"], "g", "earliest")
    assert len(subscription.poll(100, 10)) == 10
    pid = os.fork()
    if pid == 0:
        publish(driver, "t", range(100, 110), b"child")
        subscription.close()
        sys.exit(0)
    publish(driver, "t", range(10, 20), b"parent")
    status = os.waitpid(pid, 0)[1]
    publish(driver, "t", range(20, 30), b"parent")
    subscription.commit({span.partition: span.stop for span in driver.spans(["t"])})
    say(status)


def prefork(path: str, order: str) -> None:
    """Fork ten publishers out of a process whose threads publish and poll without a pause.

    Each child publishes 50, waits until told, and publishes 50 more. The parent closes its
    log before that (``first``) or after the children's end (``last``). It says how many it
    published itself.
    """
    driver = make_driver(path)
    stop = threading.Event()
    counts = [0, 0]

    def publish_on() -> None:
        while not stop.is_set():
            publish(driver, "t", range(counts[0], counts[0] + 20), b"parent")
            counts[0] += 20

    def poll_on() -> None:
        subscription = driver.subscribe(["t"], "g", "earliest")
        while not stop.is_set():
            counts[1] += len(subscription.poll(100, 1))
        subscription.close()

    threads = [threading.Thread(target=work) for work in (publish_on, poll_on)]
    for thread in threads:
        thread.start()
    reading, writing = os.pipe()
    children = []
    for number in range(10):
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            _publish_in_halves(driver, number, reading)
        children.append(pid)
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    if order == "first":
        driver.close()
    os.close(writing)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 10
    assert counts[1]
    driver.close()
    say(counts[0])


def _publish_in_halves(driver: SqliteDriver, number: int, told: int) -> None:
    publish(driver, "t", range(50), b"child %d" % number)
    os.read(told, 1)
    publish(driver, "t", range(50, 100), b"child %d" % number)
    if number % 2:
        os._exit(0)
    sys.exit(0)


def storm_write(path: str, name: str, count: str, acknowledged: str) -> None:
    """Commit ``count`` transactions of a record or two; note how many are acknowledged."""
    with open_driver(path, "synchronous=normal&busy_timeout=60") as driver:
        log = driver._log
        appender = Appender(log, lambda: 4, Retention(log, lambda: RetentionLimits(0, 0)))
        notes = os.open(acknowledged, os.O_RDWR | os.O_CREAT)
        for number in range(int(count)):
            value = b"%d" % number + b"x" * (number % 300)
            appender.append([Record("storm", value, f"{name}-{number % 3}".encode())])
            os.pwrite(notes, struct.pack("q", number + 1), 0)


def storm_checkpoint(path: str) -> None:
    """Checkpoint in a loop until standard input ends; say how often."""
    with open_driver(path, "synchronous=normal&busy_timeout=60") as driver:
        times = 0
        while not _input_ended():
            with driver._log.reading() as connection, driver._log._locked():
                if times % 2:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                else:
                    connections.truncate_wal(connection)
            times += 1
        say(times)


def _input_ended() -> bool:
    return bool(select.select([0], [], [], 0)[0])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
