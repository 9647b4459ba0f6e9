"""Listening to a backlog over Kafka, until all is handled, with a commit after each batch but the last.

Neither joining the group nor the last commit is measured, of anybody.
"""

import threading
import uuid
from contextlib import ExitStack
from typing import Any

from benchmarks import measure, peers, rows, workload
from benchmarks.bare_clients import CLIENTS, Bare, Void
from benchmarks.child_protocol import BATCH, PATIENCE, opened
from benchmarks.environment import Scene
from benchmarks.rows import Row, Target
from benchmarks.sections import java_tools
from notifier_kafka import target
from notifier_kafka.listening import filters, listener
from notifier_kafka.publishing import transport

ALL, EACH = "batch endpoint", "one by one, filters on"
OSLO_BATCH, OSLO_EACH = "oslo.messaging, batch", "oslo.messaging, one by one, filters"
PEERS = {
    OSLO_BATCH: ("oslo_messaging", "listen-batch"),
    OSLO_EACH: ("oslo_messaging", "listen"),
    "aiokafka, batches": ("aiokafka", "listen"),
    "FastStream (confluent), batches": ("faststream", "listen"),
}


def listen(scene: Scene) -> list[Row]:
    """Listen with both client libraries, in batches and one by one."""
    topic, found = scene.topic(), []
    with scene.bus("confluent-kafka") as bus:
        # Its first one is among them.
        workload.send_many(workload.sender(bus, topic), scene.size.each - 1)
    for client, bare in CLIENTS.items():
        with ExitStack() as stack:
            bus = stack.enter_context(scene.bus(client))
            contestants = [
                _listening(ALL, bus, topic, batch=True),
                _listening(EACH, bus, topic, batch=False),
                _bare_listening(bare, scene.cluster.bootstrap, topic, client),
            ]
            if client == "confluent-kafka":
                contestants += _others(scene, stack, topic)
            rates = measure.compare(contestants, scene.size.each, scene.size.rounds)
        found += _rows(client, rates)
    return found


def _others(scene: Scene, stack: ExitStack, topic: str) -> list[measure.Contestant]:
    bootstrap, found = scene.cluster.bootstrap, []
    if scene.peers:
        for name, (peer, role) in PEERS.items():
            child = stack.enter_context(peers.start(peer, role, bootstrap, topic))
            found.append(peers.contestant(name, child, prepared=peer == "aiokafka"))
    return [*found, java_tools.consumer(bootstrap, f"{topic}.info")]


def _rows(client: str, rates: measure.Rounds) -> list[Row]:
    group, bare = f"listen over Kafka, {client}", f"bare {client}"
    targets = client == "confluent-kafka"
    found = [
        rows.beside(group, rates, ALL, bare, Target("≥", 0.6) if targets else None),
        rows.beside(group, rates, EACH, bare),
    ]
    if OSLO_BATCH in rates:
        found.insert(1, rows.beside(group, rates, ALL, OSLO_BATCH, Target("≥", 8)))
        found.insert(2, rows.beside(group, rates, ALL, OSLO_EACH))
        found.insert(3, rows.beside(group, rates, EACH, OSLO_EACH, Target("≥", 5)))
    others = [name for name in rates if name not in (ALL, EACH, bare)]
    found += [rows.beside(group, rates, name, bare) for name in others]
    return [*found, rows.alone(group, rates, bare)]


class _Counter:
    """An endpoint, single or batch, that holds the first message up until it may go on."""

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
    filter_rule = filters.NotificationFilter(publisher_id=r"^compute\.", event_type=r"^compute\.instance\.")

    def info(self, *_message: Any) -> None:
        self.count(1)


class _Batch(_Counter):
    def info(self, messages: list[dict[str, Any]]) -> None:
        self.count(len(messages))


def _listening(
    name: str, bus: transport.NotificationTransport, topic: str, *, batch: bool
) -> measure.Contestant:
    stack = ExitStack()
    endpoints: list[_Counter] = []

    def prepare(count: int) -> None:
        endpoints[:] = [_Batch(count) if batch else _Single(count)]
        stack.enter_context(_listener(bus, topic, endpoints[0]))
        if not endpoints[0].came.wait(PATIENCE):
            raise Void("nothing came")

    def run(_count: int) -> None:
        endpoints[0].go.set()
        if not endpoints[0].done.wait(PATIENCE):
            raise Void(f"{endpoints[0].left} did not arrive")

    return measure.Contestant(name, run, prepare, stack.close)


def _listener(bus: transport.NotificationTransport, topic: str, endpoint: _Counter) -> listener.Listener:
    where, pool = [target.Target(topic=topic)], f"pool-{uuid.uuid4()}"
    if isinstance(endpoint, _Single):
        return listener.get_notification_listener(bus, where, [endpoint], pool=pool)
    return listener.get_batch_notification_listener(bus, where, [endpoint], pool=pool, batch_size=BATCH)


def _bare_listening(make: type[Bare], bootstrap: str, topic: str, client: str) -> measure.Contestant:
    made: list[Bare] = []

    def prepare(_count: int) -> None:
        made.append(make(bootstrap))
        made[0].join(f"{topic}.info", f"bare-{uuid.uuid4()}")

    def run(count: int) -> None:
        made[0].consume(count, opened)

    return measure.Contestant(f"bare {client}", run, prepare, lambda: made.pop().close())
