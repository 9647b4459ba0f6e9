"""Publishing and listening over the embedded log, beside a bare loop over sqlite3.

The bare loops build and parse the same envelope with the fastest JSON library, use batches of the
same size, and are as durable.
"""

import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import child_protocol, measure, rows, workload
from benchmarks.bare_clients import InvalidMeasurement
from benchmarks.child_protocol import BATCH_RECORDS, PAYLOAD, PUBLISHER_ID, TIMEOUT_SECONDS, decode
from benchmarks.environment import Environment, connect
from benchmarks.rows import Goal, Row
from notifier_kafka import Notifier, Target, get_batch_notification_listener, get_notification_listener

NEAR = Goal("≥", 0.8)
ONE_BY_ONE, SEND_MANY, BATCHES = Goal("≥", 30_000), Goal("≥", 100_000), Goal("≥", 60_000)
"""Targets for an idle machine with two processors."""
INSERT, SELECT = "bare encode and insert", "bare select and decode"


def publish(environment: Environment) -> list[Row]:
    """Publish one by one and in bulk, until all is durable."""
    group, directory = "publish over SQLite", environment.directory
    contestants = [
        _publishing("one by one", workload.one_by_one, directory),
        _publishing("send_many", workload.send_many, directory),
        _bare_publishing(directory),
    ]
    rates = measure.compare(contestants, environment.size.each, environment.size.rounds)
    ours = [
        row
        for each, rate in (("one by one", ONE_BY_ONE), ("send_many", SEND_MANY))
        for row in (
            rows.make_ratio_row(group, rates, each, INSERT, NEAR),
            rows.make_row(group, rates, each, rate),
        )
    ]
    return [*ours, rows.make_row(group, rates, INSERT)]


def listen(environment: Environment) -> list[Row]:
    """Listen to a backlog, in batches and one by one, until all is committed."""
    group, count, log = "listen over SQLite", environment.size.each, environment.directory / "backlog.db"
    bare_log = _bare_log(environment.directory / "bare.db")
    environment.callback(bare_log.close)
    with _sending(log) as notifier:
        workload.send_many(notifier, count)
    _insert(
        bare_log, [(number, 0.0, b"compute.host1", child_protocol.encode()[0]) for number in range(count)]
    )
    bare_log.execute("CREATE TABLE position(next INTEGER)")
    contestants = [
        measure.Contestant("batch endpoint", lambda n: _listen(log, n, batch=True)),
        measure.Contestant("one by one", lambda n: _listen(log, n, batch=False)),
        measure.Contestant(SELECT, lambda n: _bare_listen(bare_log, n)),
    ]
    rates = measure.compare(contestants, count, environment.size.rounds)
    batches, singly = (
        rows.make_ratio_row(group, rates, each, SELECT, NEAR) for each in ("batch endpoint", "one by one")
    )
    fast = rows.make_row(group, rates, "batch endpoint", BATCHES)
    return [batches, fast, singly, rows.make_row(group, rates, SELECT)]


@contextmanager
def _sending(log: Path) -> Iterator[Notifier]:
    # The bare loops drop nothing, so neither may we.
    bus = connect(f"sqlite:///{log}", block_timeout=TIMEOUT_SECONDS)
    try:
        yield Notifier(bus, PUBLISHER_ID, driver="messagingv2")
    finally:
        bus.cleanup()


def _publishing(name: str, do: Callable[[Notifier, int], None], directory: Path) -> measure.Contestant:
    opened = ExitStack()
    notifier: list[Notifier] = []

    def prepare(_count: int) -> None:
        notifier[:] = [opened.enter_context(_sending(directory / f"{uuid.uuid4()}.db"))]
        notifier[0].prepare(wait=True).info({}, "warm.up", PAYLOAD)

    return measure.Contestant(name, lambda count: do(notifier[0], count), prepare, opened.close)


def _bare_publishing(directory: Path) -> measure.Contestant:
    opened: list[sqlite3.Connection] = []

    def prepare(_count: int) -> None:
        opened.append(_bare_log(directory / f"{uuid.uuid4()}.db"))

    def insert(count: int) -> None:
        made = []
        for number in range(count):
            made.append((number, 0.0, b"compute.host1", child_protocol.encode()[0]))
            if len(made) == BATCH_RECORDS:
                _insert(opened[0], made)
                made = []
        _insert(opened[0], made)

    return measure.Contestant(INSERT, insert, prepare, lambda: opened.pop().close())


def _bare_log(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE record(id INTEGER PRIMARY KEY, timestamp REAL, key BLOB, value BLOB)")
    return connection


def _insert(connection: sqlite3.Connection, made: list[tuple[int, float, bytes, bytes]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", made)
    connection.execute("COMMIT")


class _Counter:
    """An endpoint, single or batch, that counts what it gets."""

    def __init__(self, goal: int) -> None:
        self.left = goal
        self.done = threading.Event()

    def count(self, number: int) -> None:
        self.left -= number
        if self.left <= 0:
            self.done.set()


class _Single(_Counter):
    def info(self, *_message: Any) -> None:
        self.count(1)


class _Batch(_Counter):
    def info(self, messages: list[dict[str, Any]]) -> None:
        self.count(len(messages))


def _listen(log: Path, count: int, *, batch: bool) -> None:
    targets, pool = [Target(topic="notifications")], f"pool-{uuid.uuid4()}"
    with _sending(log) as notifier:
        bus = notifier.transport
        endpoint = _Batch(count) if batch else _Single(count)
        if batch:
            each = get_batch_notification_listener(
                bus, targets, [endpoint], pool=pool, batch_size=BATCH_RECORDS
            )
        else:
            each = get_notification_listener(bus, targets, [endpoint], pool=pool)
        with each:
            if not endpoint.done.wait(TIMEOUT_SECONDS):
                raise InvalidMeasurement(f"{endpoint.left} did not arrive")


def _bare_listen(log: sqlite3.Connection, count: int) -> None:
    position = 0
    while position < count:
        found = log.execute(
            "SELECT value FROM record WHERE id >= ? ORDER BY id LIMIT ?", (position, BATCH_RECORDS)
        )
        position += len([decode(value) for (value,) in found])
        log.execute("INSERT INTO position VALUES (?)", (position,))
