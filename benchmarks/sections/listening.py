"""Listening to a backlog over Kafka until all is handled, with a commit after each batch but the last.

Neither joining the group nor the last commit is measured, for any contestant.
"""

import threading
import uuid
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from benchmarks import measure, peers, rows, workload
from benchmarks.bare_clients import CLIENTS, Bare, InvalidMeasurement
from benchmarks.child_protocol import BATCH_RECORDS, TIMEOUT_SECONDS, decode
from benchmarks.environment import Environment
from benchmarks.rows import Goal, Row
from benchmarks.sections import java_tools
from notifier_kafka import (
    NotificationFilter,
    NotificationTransport,
    Target,
    get_batch_notification_listener,
    get_notification_listener,
)

BATCHES, ONE_BY_ONE = "batch endpoint", "one by one, filters on"
OSLO_BATCH, OSLO_ONE_BY_ONE = "oslo.messaging, batch", "oslo.messaging, one by one, filters"
PEERS = {
    OSLO_BATCH: ("oslo_messaging", "listen-batch"),
    OSLO_ONE_BY_ONE: ("oslo_messaging", "listen"),
    "aiokafka, batches": ("aiokafka", "listen"),
    "FastStream (confluent), batches": ("faststream", "listen"),
}


def listen(environment: Environment) -> list[Row]:
    """Listen with both client libraries, in batches and one by one."""
    topic, found = environment.create_topic(), []
    with environment.bus("confluent-kafka") as bus:
        # One less: connecting has published one.
        workload.send_many(workload.connected_notifier(bus, topic), environment.size.each - 1)
    for client, bare in CLIENTS.items():
        with ExitStack() as stack:
            bus = stack.enter_context(environment.bus(client))
            contestants = [
                _listening(BATCHES, bus, topic, batch=True),
                _listening(ONE_BY_ONE, bus, topic, batch=False),
                _bare_listening(bare, environment.cluster.bootstrap, topic, client),
            ]
            if client == "confluent-kafka":
                contestants += _others(environment, stack, topic)
            rates = measure.compare(contestants, environment.size.each, environment.size.rounds)
        found += _rows(client, rates)
    return found


def _others(environment: Environment, stack: ExitStack, topic: str) -> list[measure.Contestant]:
    bootstrap, found = environment.cluster.bootstrap, []
    if environment.peers:
        for name, (peer, role) in PEERS.items():
            child = stack.enter_context(peers.start(peer, role, bootstrap, topic))
            found.append(peers.contestant(name, child, prepared=peer == "aiokafka"))
    return [*found, java_tools.consumer(bootstrap, f"{topic}.info")]


def _rows(client: str, rates: measure.Rounds) -> list[Row]:
    group, bare = f"listen over Kafka, {client}", f"bare {client}"
    targets = client == "confluent-kafka"
    found = [
        rows.make_ratio_row(group, rates, BATCHES, bare, Goal("≥", 0.6) if targets else None),
        rows.make_ratio_row(group, rates, ONE_BY_ONE, bare),
    ]
    if OSLO_BATCH in rates:
        found.insert(1, rows.make_ratio_row(group, rates, BATCHES, OSLO_BATCH, Goal("≥", 8)))
        found.insert(2, rows.make_ratio_row(group, rates, BATCHES, OSLO_ONE_BY_ONE))
        found.insert(3, rows.make_ratio_row(group, rates, ONE_BY_ONE, OSLO_ONE_BY_ONE, Goal("≥", 5)))
    others = [name for name in rates if name not in (BATCHES, ONE_BY_ONE, bare)]
    found += [rows.make_ratio_row(group, rates, name, bare) for name in others]
    return [*found, rows.make_row(group, rates, bare)]


class _Counter:
    """An endpoint, single or batch, that blocks at the first message until the measurement begins."""

    def __init__(self, goal: int) -> None:
        self.left = goal
        self.came, self.go, self.done = threading.Event(), threading.Event(), threading.Event()

    def count(self, number: int) -> None:
        if not self.came.is_set():
            self.came.set()
            self.go.wait()
        self.left -= number
        if self.left <= 0:
            self.done.set()


class _Single(_Counter):
    filter_rule = NotificationFilter(publisher_id=r"^compute\.", event_type=r"^compute\.instance\.")

    def info(self, *_message: Any) -> None:
        self.count(1)


class _Batch(_Counter):
    def info(self, messages: list[dict[str, Any]]) -> None:
        self.count(len(messages))


def _listening(name: str, bus: NotificationTransport, topic: str, *, batch: bool) -> measure.Contestant:
    stack = ExitStack()
    endpoints: list[_Counter] = []

    def prepare(count: int) -> None:
        endpoints[:] = [_Batch(count) if batch else _Single(count)]
        stack.enter_context(_listener(bus, topic, endpoints[0]))
        if not endpoints[0].came.wait(TIMEOUT_SECONDS):
            raise InvalidMeasurement("nothing arrived")

    def run(_count: int) -> None:
        endpoints[0].go.set()
        if not endpoints[0].done.wait(TIMEOUT_SECONDS):
            raise InvalidMeasurement(f"{endpoints[0].left} did not arrive")

    return measure.Contestant(name, run, prepare, stack.close)


def _listener(bus: NotificationTransport, topic: str, endpoint: _Counter) -> AbstractContextManager[Any]:
    where, pool = [Target(topic=topic)], f"pool-{uuid.uuid4()}"
    if isinstance(endpoint, _Single):
        return get_notification_listener(bus, where, [endpoint], pool=pool)
    return get_batch_notification_listener(bus, where, [endpoint], pool=pool, batch_size=BATCH_RECORDS)


def _bare_listening(make: type[Bare], bootstrap: str, topic: str, client: str) -> measure.Contestant:
    made: list[Bare] = []

    def prepare(_count: int) -> None:
        made.append(make(bootstrap))
        made[0].join(f"{topic}.info", f"bare-{uuid.uuid4()}")

    def run(count: int) -> None:
        made[0].consume(count, decode)

    return measure.Contestant(f"bare {client}", run, prepare, lambda: made.pop().close())
