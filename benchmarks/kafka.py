"""Publishing and listening over a real Kafka broker, beside bare loops over the same client.

The bare loops build the same envelope and headers with orjson, with the same ids and
timestamps, and decode it with orjson; one key for all would fill one partition, so there is none.
"""

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import orjson
from oslo_config import cfg

from benchmarks import measure
from benchmarks.bare_kafka import BATCH, CLIENTS, PATIENCE, Bare, Message, Void
from notifier_kafka import identity, listener, notifier, options, target, transport
from notifier_kafka_drivers.kafka.cluster import Cluster

PARTITIONS = 4
PUBLISHER = "compute.host1"
EVENT = "compute.instance.create.end"
PAYLOAD = {"instance_id": "5f643cfc-664b-4c69-8000-ce2ed7b08216", "state": "active", "text": "x" * 125}
Results = dict[str, list[measure.Result]]


def publish(count: int, rounds: int) -> Results:
    """Publish one by one and in bulk, until all is acknowledged by the broker."""
    found = {}
    with _broker() as cluster:
        for client, bare in CLIENTS.items():
            with _transport(cluster, client) as bus, closing(bare(cluster.bootstrap)) as loop:
                _make_topic(bus, "publishing")
                contestants = [
                    _publishing("send_many", _send_many, bus),
                    _publishing("one by one", _one_by_one, bus),
                    _bare_publishing(loop, client),
                ]
                found[f"publish over Kafka with {client}"] = measure.compare(contestants, count, rounds)
    return found


def listen(count: int, rounds: int) -> Results:
    """Listen to a backlog, in batches and one by one; joining the group is not measured."""
    found = {}
    with _broker() as cluster:
        with _transport(cluster, "confluent-kafka") as bus:
            _make_topic(bus, "backlog")
            _send_many(_notifier(bus, "backlog"), count)
        for client, bare in CLIENTS.items():
            with _transport(cluster, client) as bus:
                contestants = [
                    _listening("batch endpoint", bus, batch=True),
                    _listening("one by one", bus, batch=False),
                    _bare_listening(bare, cluster.bootstrap, client),
                ]
                found[f"listen over Kafka with {client}"] = measure.compare(contestants, count, rounds)
    return found


@contextmanager
def _broker() -> Iterator[Cluster]:
    # Not leashed: those of the tests are made to start fast and run slowly.
    with tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-") as directory:
        cluster = Cluster(directory, leashed=False)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def _transport(cluster: Cluster, client: str) -> Iterator[transport.NotificationTransport]:
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    # The bare loops never drop: neither may what is compared with them.
    conf.set_override("block_timeout", PATIENCE, group="notifications")
    bus = transport.get_notification_transport(conf, f"{cluster.url}/?client={client}")
    try:
        yield bus
    finally:
        bus.cleanup()


def _make_topic(bus: transport.NotificationTransport, topic: str) -> None:
    if f"{topic}.info" not in bus.driver.admin().list_topics():
        bus.driver.admin().create_topic(f"{topic}.info", PARTITIONS)


def _notifier(bus: transport.NotificationTransport, topic: str) -> notifier.Notifier:
    return notifier.Notifier(bus, PUBLISHER, driver="messagingv2", topics=[topic], key="none")


def _publishing(
    name: str, work: Callable[[notifier.Notifier, int], None], bus: transport.NotificationTransport
) -> measure.Contestant:
    sender = _notifier(bus, "publishing")
    sender.prepare(wait=True).info({}, "warm.up", PAYLOAD)
    return measure.Contestant(name, lambda count: work(sender, count))


def _send_many(sender: notifier.Notifier, count: int) -> None:
    for begin in range(0, count, BATCH):
        sender.send_many({}, "info", [(EVENT, PAYLOAD)] * min(BATCH, count - begin))
    _expect_all_acknowledged(sender)


def _one_by_one(sender: notifier.Notifier, count: int) -> None:
    info = sender.info
    for _ in range(count):
        info({}, EVENT, PAYLOAD)
    _expect_all_acknowledged(sender)


def _expect_all_acknowledged(sender: notifier.Notifier) -> None:
    unsent = sender.flush(PATIENCE)
    lost = {k: v for k, v in sender.transport.accounts.counts().items() if k.startswith("lost")}
    if unsent or lost:
        raise Void(f"{unsent} unsent, lost {lost}")


def _bare_publishing(bare: Bare, client: str) -> measure.Contestant:
    bare.publish_to("publishing.info")
    return measure.Contestant(
        f"bare {client}", lambda count: bare.publish("publishing.info", _message, count)
    )


def _message() -> Message:
    message_id = identity.new_message_id()
    inner = {
        "message_id": message_id,
        "publisher_id": PUBLISHER,
        "event_type": EVENT,
        "priority": "INFO",
        "payload": PAYLOAD,
        "timestamp": identity.timestamp_now(),
        "_context": {},
    }
    value = orjson.dumps({"oslo.version": "2.0", "oslo.message": orjson.dumps(inner).decode()})
    headers = [
        ("content-type", b"application/json"),
        ("message-id", message_id.encode()),
        ("event-type", EVENT.encode()),
        ("publisher-id", PUBLISHER.encode()),
        ("priority", b"INFO"),
    ]
    return value, headers


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
    def info(self, *_message: Any) -> None:
        self.count(1)


class _Batch(_Counter):
    def info(self, messages: list[dict[str, Any]]) -> None:
        self.count(len(messages))


def _listening(name: str, bus: transport.NotificationTransport, *, batch: bool) -> measure.Contestant:
    opened = ExitStack()
    endpoints: list[_Counter] = []

    def prepare(count: int) -> None:
        endpoints[:] = [_Batch(count) if batch else _Single(count)]
        opened.enter_context(_listener(bus, endpoints[0], batch=batch))
        if not endpoints[0].came.wait(PATIENCE):
            raise Void("nothing came")

    def work(_count: int) -> None:
        endpoints[0].go.set()
        if not endpoints[0].done.wait(PATIENCE):
            raise Void(f"{endpoints[0].left} did not arrive")

    return measure.Contestant(name, work, prepare, opened.close)


def _listener(bus: transport.NotificationTransport, endpoint: _Counter, *, batch: bool) -> listener.Listener:
    where = [target.Target(topic="backlog")]
    pool = f"pool-{uuid.uuid4()}"
    if not batch:
        return listener.get_notification_listener(bus, where, [endpoint], pool=pool)
    return listener.get_batch_notification_listener(bus, where, [endpoint], pool=pool, batch_size=BATCH)


def _bare_listening(make: type[Bare], bootstrap: str, client: str) -> measure.Contestant:
    opened: list[Bare] = []

    def prepare(_count: int) -> None:
        opened.append(make(bootstrap))
        opened[0].join("backlog.info", f"bare-{uuid.uuid4()}")

    def work(count: int) -> None:
        opened[0].consume(count, lambda value: orjson.loads(orjson.loads(value)["oslo.message"]))

    return measure.Contestant(f"bare {client}", work, prepare, lambda: opened.pop().close())
