"""What the conformance suite runs in child processes, to kill them or to watch their I/O.

``python -m notifier_kafka.testing.child [--config-file FILE] VERB URL ...``, with the verbs

- ``hold URL TOPIC GROUP COUNT``: poll until there are COUNT deliveries, print ``held``, wait
  for a line on stdin, commit them all, print ``committed`` or ``refused``;
- ``publish URL TOPIC COUNT``: publish and flush, print ``flushed PENDING``, wait for a line;
- ``begin URL TOPIC COUNT``: offer to a transaction, print ``begun COUNT``, wait for a line;
- ``watch URL``: import and construct the driver, print what I/O that did, as JSON.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import machinery, metadata
from typing import Any

from oslo_config import cfg

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Driver, Limits, Partition, Record
from notifier_kafka.errors import CommitRefused, MessagingException, TransportUnavailable
from notifier_kafka.publishing import transport

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CODE_SUFFIXES = tuple(machinery.all_suffixes())
IO_EVENTS = (
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostby",
    "sqlite3.connect",
    "subprocess.Popen",
    "os.fork",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
)


def parse(url: str, config_files: Sequence[str]) -> TransportURL:
    """Parse a URL with a configuration that reads ``config_files``."""
    conf = cfg.ConfigOpts()
    conf([], project="conformance", default_config_files=list(config_files), default_config_dirs=[])
    return TransportURL.parse(conf, url)


def connect(url: str, config_files: Sequence[str]) -> Driver:
    """Make the driver that ``url`` names, found by its entry point."""
    parsed = parse(url, config_files)
    driver: Driver = plugins.load(transport.NAMESPACE, str(parsed.transport))(parsed)
    return driver


def numbered(topic: str, count: int, first: int = 0) -> list[Record]:
    """Make records with distinct values, and enough keys to reach every partition."""
    return [Record(topic, b"%d" % n, b"key-%d" % (n % 64)) for n in range(first, first + count)]


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _hold(driver: Driver, topic: str, group: str, count: int) -> None:
    subscription = driver.subscribe([topic], group, "earliest")
    positions: dict[Partition, int] = {}
    held = 0
    while held < count:
        try:
            deliveries = subscription.poll(count - held, 0.2)
        except TransportUnavailable:
            continue
        held += len(deliveries)
        positions |= {delivery.partition: delivery.offset + 1 for delivery in deliveries}
    _print("held")
    sys.stdin.readline()
    try:
        subscription.commit(positions)
    except CommitRefused:
        _print("refused")
    else:
        _print("committed")


def _publish(driver: Driver, topic: str, count: int) -> None:
    failures: list[MessagingException] = []
    publisher = driver.publisher(lambda _, error: failures.append(error), Limits())
    for record in numbered(topic, count):
        publisher.offer(record)
    _print(f"flushed {publisher.flush(60) + len(failures)}")
    sys.stdin.readline()


def _begin(driver: Driver, topic: str, count: int) -> None:
    transaction = driver.transaction()
    for record in numbered(topic, count):
        transaction.offer(record)
    _print(f"begun {count}")
    sys.stdin.readline()
    transaction.abort()


class IoWatch:
    """Records what a block of code does to files and sockets.

    Audit events of the interpreter show calls from Python. Files that a C library opens are
    found as new file descriptors.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._active = False
        sys.addaudithook(self._audit)

    def __enter__(self) -> "IoWatch":
        self._before = set(os.listdir("/proc/self/fd"))
        self._active = True
        return self

    def __exit__(self, *_: object) -> None:
        self._active = False
        for number in set(os.listdir("/proc/self/fd")) - self._before:
            path = f"/proc/self/fd/{number}"
            # The descriptor that listed this directory is closed by now.
            if os.path.lexists(path):
                self.seen.append(f"descriptor of {os.readlink(path)}")

    def _audit(self, event: str, details: tuple[Any, ...]) -> None:
        if not self._active:
            return
        if event.startswith(IO_EVENTS) or (event == "open" and not _is_import(*details)):
            self.seen.append(f"{event} {details!r}")


def _is_import(path: object, mode: str | None, flags: int) -> bool:
    # Importing reads code and files that are installed beside it.
    writes = bool(flags & WRITE_FLAGS) if mode is None else bool(set(mode) & set("wax+"))
    if writes or not isinstance(path, str):
        return False
    return path.endswith(CODE_SUFFIXES) or os.path.realpath(path).startswith((sys.prefix, sys.base_prefix))


def _watch(url: str, config_files: Sequence[str]) -> None:
    parsed = parse(url, config_files)
    (entry, *_) = metadata.entry_points(group=transport.NAMESPACE, name=str(parsed.transport))
    sys.dont_write_bytecode = True
    watch = IoWatch()
    with watch:
        entry.load()(parsed)
    _print(json.dumps(watch.seen))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="python -m notifier_kafka.testing.child")
    parser.add_argument("--config-file", action="append", default=[])
    parser.add_argument("verb", choices=["hold", "publish", "begin", "watch"])
    parser.add_argument("url")
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args(arguments)
    if given.verb == "watch":
        _watch(given.url, given.config_file)
        return
    driver = connect(given.url, given.config_file)
    try:
        if given.verb == "hold":
            topic, group, count = given.rest
            _hold(driver, topic, group, int(count))
        else:
            topic, count = given.rest
            (_publish if given.verb == "publish" else _begin)(driver, topic, int(count))
    finally:
        driver.close()


if __name__ == "__main__":
    main()
