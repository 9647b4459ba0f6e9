"""Publishing and listening over the embedded log, beside a bare loop over sqlite3.

The bare loops build and parse the same envelope with the fastest JSON library here and
insert or select in batches of the same size, durably to the same level.
"""

import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oslo_config import cfg

from benchmarks import measure
from notifier_kafka import listener, notifier, options, target, transport

dumps: Callable[[Any], bytes]
loads: Callable[[Any], Any]
try:
    from orjson import dumps, loads
except ModuleNotFoundError:
    import json

    loads = json.loads
    dumps = lambda value: json.dumps(value, separators=(",", ":")).encode()  # noqa: E731

PAYLOAD = {"instance_id": "5f643cfc-664b-4c69-8000-ce2ed7b08216", "state": "active", "text": "x" * 125}
BATCH = 1_000


def publish(count: int, rounds: int) -> dict[str, list[measure.Result]]:
    """Publish one by one and in bulk, until all is durable."""
    with tempfile.TemporaryDirectory() as directory:
        contestants = [
            _publishing("send_many", _send_many, Path(directory)),
            _publishing("one by one", _one_by_one, Path(directory)),
            _bare_publishing(Path(directory)),
        ]
        return {"publish over SQLite": measure.compare(contestants, count, rounds)}


def listen(count: int, rounds: int) -> dict[str, list[measure.Result]]:
    """Listen to a backlog, in batches and one by one, until all is committed."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "backlog.db"
        with _transport(log) as bus:
            _send_many(notifier.Notifier(bus, "compute.host1", driver="messagingv2"), count)
        bare_log = _bare_log(Path(directory) / "bare.db")
        _insert(bare_log, [(number, 0.0, b"compute.host1", _envelope()) for number in range(count)])
        bare_log.execute("CREATE TABLE position(next INTEGER)")
        contestants = [
            measure.Contestant("batch endpoint", lambda n: _listen(log, n, batch=True)),
            measure.Contestant("one by one", lambda n: _listen(log, n, batch=False)),
            measure.Contestant("bare select and decode", lambda n: _bare_listen(bare_log, n)),
        ]
        return {"listen over SQLite": measure.compare(contestants, count, rounds)}


def _publishing(name: str, work: Any, directory: Path) -> measure.Contestant:
    opened: list[Any] = []

    def prepare(_count: int) -> None:
        context = _transport(directory / f"{uuid.uuid4()}.db")
        bus = context.__enter__()
        opened.extend([context, notifier.Notifier(bus, "compute.host1", driver="messagingv2")])
        opened[1].prepare(wait=True).info({}, "warm.up", PAYLOAD)

    def finish() -> None:
        opened[0].__exit__(None, None, None)
        opened.clear()

    return measure.Contestant(name, lambda count: work(opened[1], count), prepare, finish)


def _send_many(sender: notifier.Notifier, count: int) -> None:
    for begin in range(0, count, BATCH):
        events = [("compute.instance.create.end", PAYLOAD)] * min(BATCH, count - begin)
        sender.send_many({}, "info", events)
    _expect_all_durable(sender)


def _one_by_one(sender: notifier.Notifier, count: int) -> None:
    info = sender.info
    for _ in range(count):
        info({}, "compute.instance.create.end", PAYLOAD)
    _expect_all_durable(sender)


def _expect_all_durable(sender: notifier.Notifier) -> None:
    unsent = sender.flush(120)
    lost = {k: v for k, v in sender.transport.accounts.counts().items() if k.startswith("lost")}
    if unsent or lost:
        raise RuntimeError(f"the measurement is void: {unsent} unsent, lost {lost}")


def _bare_publishing(directory: Path) -> measure.Contestant:
    opened: list[sqlite3.Connection] = []

    def prepare(_count: int) -> None:
        opened.append(_bare_log(directory / f"{uuid.uuid4()}.db"))

    def work(count: int) -> None:
        rows = []
        for number in range(count):
            rows.append((number, 0.0, b"compute.host1", _envelope()))
            if len(rows) == BATCH:
                _insert(opened[0], rows)
                rows = []
        _insert(opened[0], rows)

    def finish() -> None:
        opened.pop().close()

    return measure.Contestant("bare encode and insert", work, prepare, finish)


def _bare_log(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE record(id INTEGER PRIMARY KEY, timestamp REAL, key BLOB, value BLOB)")
    return connection


def _insert(connection: sqlite3.Connection, rows: list[tuple[int, float, bytes, bytes]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")


def _envelope() -> bytes:
    inner = {
        "message_id": str(uuid.uuid4()),
        "publisher_id": "compute.host1",
        "event_type": "compute.instance.create.end",
        "priority": "INFO",
        "payload": PAYLOAD,
        "timestamp": str(datetime.now(UTC).replace(tzinfo=None)),
        "_context": {},
    }
    return dumps({"oslo.version": "2.0", "oslo.message": dumps(inner).decode()})


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
    targets = [target.Target(topic="notifications")]
    pool = f"pool-{uuid.uuid4()}"
    with _transport(log) as bus:
        if batch:
            endpoint: _Counter = _Batch(count)
            each = listener.get_batch_notification_listener(
                bus, targets, [endpoint], pool=pool, batch_size=BATCH
            )
        else:
            endpoint = _Single(count)
            each = listener.get_notification_listener(bus, targets, [endpoint], pool=pool)
        with each:
            if not endpoint.done.wait(300):
                raise RuntimeError(f"the measurement is void: {endpoint.left} did not arrive")


def _bare_listen(log: sqlite3.Connection, count: int) -> None:
    position = 0
    while position < count:
        rows = log.execute("SELECT value FROM record WHERE id >= ? ORDER BY id LIMIT ?", (position, BATCH))
        found = [loads(loads(value)["oslo.message"]) for (value,) in rows]
        position += len(found)
        log.execute("INSERT INTO position VALUES (?)", (position,))


@contextmanager
def _transport(log: Path) -> Iterator[transport.NotificationTransport]:
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[])
    options.register(conf)
    # The bare loops never drop: neither may what is compared with them.
    conf.set_override("block_timeout", 60.0, group="notifications")
    bus = transport.get_notification_transport(conf, f"sqlite:///{log}")
    try:
        yield bus
    finally:
        bus.cleanup()
