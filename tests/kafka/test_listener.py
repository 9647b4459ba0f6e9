"""The real listener on Kafka: a rebalance while an endpoint works, and a broker that restarts."""

import contextlib
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.listening.listener import Listener, get_notification_listener
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport
from notifier_kafka.target import Target
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from tests.shared.kafka.kafka_rig import until

BATCH = 40
PATIENT = 120.0
Transports = Callable[..., NotificationTransport]


class Endpoint:
    """Keeps what it is given. Told to, it works on the next one until it is released."""

    def __init__(self, *, busy: bool = False) -> None:
        self.handled: list[int] = []
        self.busy = threading.Event()
        self.released = threading.Event()
        if not busy:
            self.released.set()

    def info(self, _context: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> None:
        self.busy.set()
        assert self.released.wait(PATIENT)
        self.handled.append(payload["n"])


@pytest.fixture
def transports(client: str) -> Iterator[Transports]:
    """Make a transport for a URL, with small batches and quick timeouts."""
    with contextlib.ExitStack() as stack:

        def make(url: str) -> NotificationTransport:
            conf = cfg.ConfigOpts()
            conf([], project="test", default_config_files=[], default_config_dirs=[])
            query = f"client={client}&poll_interval=6&session_timeout=6&topic_partitions=4"
            made = get_notification_transport(conf, f"{url}/?{query}")
            stack.callback(made.cleanup)
            conf.set_override("batch_size", BATCH, group="listener")
            return made

        yield make


def publish(transport: NotificationTransport, topic: str, numbers: range) -> None:
    for n in numbers:
        Notifier(transport, f"host-{n}", "messagingv2", topics=[topic]).info({}, "event", {"n": n})
    assert transport.flush(60.0) == 0


def listener(transport: NotificationTransport, topic: str, endpoint: Endpoint) -> Listener:
    return get_notification_listener(transport, [Target(topic=topic)], [endpoint], pool=topic)


def sharing(transport: NotificationTransport, topic: str) -> int:
    """Count the members that have a share of the notifications."""
    members = transport.driver.admin().describe_group(topic).members
    return sum(any(part.topic == f"{topic}.info" for part in owned) for owned in members.values())


@contextlib.contextmanager
def released(endpoint: Endpoint) -> Iterator[None]:
    """Let a busy endpoint go, however the test ends."""
    try:
        yield
    finally:
        endpoint.released.set()


@pytest.mark.long_with("kafka-python")
def test_a_rebalance_while_an_endpoint_works_loses_nothing_and_repeats_a_batch_at_most(
    kafka_cluster: Cluster, transports: Transports, topic: str
) -> None:
    first, second = transports(kafka_cluster.url), transports(kafka_cluster.url)
    publish(first, topic, range(200))
    slow, quick = Endpoint(busy=True), Endpoint()
    with listener(first, topic, slow), released(slow):
        until(slow.busy.is_set, "the first to be at work", PATIENT)
        with listener(second, topic, quick):
            until(lambda: quick.handled, "the second to have a share", PATIENT)
            # For longer than poll_interval: by then Kafka would throw out a member that is stuck.
            slow.released.wait(8.0)
            until(lambda: sharing(first, topic) == 2, "both to be members", PATIENT)
            slow.released.set()
            until(lambda: {*slow.handled, *quick.handled} == set(range(200)), "all of them", PATIENT)
            publish(second, topic, range(200, 240))
            until(lambda: {*slow.handled, *quick.handled} == set(range(240)), "those after it", PATIENT)
    repeated = Counter(slow.handled + quick.handled).total() - 240
    assert repeated <= BATCH


@pytest.mark.long_with("kafka-python")
def test_a_broker_that_restarts_under_a_listener_is_said_once_and_costs_nothing(
    fragile: Cluster, transports: Transports, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport = transports(fragile.url)
    publish(transport, topic, range(20))
    endpoint = Endpoint()

    def said(words: str) -> list[str]:
        loud = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        return [text for text in loud if words in text]

    with listener(transport, topic, endpoint):
        until(lambda: set(endpoint.handled) == set(range(20)), "the first twenty", PATIENT)
        fragile.stop()
        until(lambda: said("The log is unavailable"), "word of it", PATIENT)
        # Many tries in vain meanwhile; whatever they were, they are no news.
        endpoint.busy.clear()
        endpoint.busy.wait(6.0)
        fragile.start()
        publish(transport, topic, range(20, 40))
        until(lambda: set(endpoint.handled) == set(range(40)), "the next twenty", PATIENT)
        until(lambda: said("The log is back"), "word of that", PATIENT)
    assert len(said("")) <= 4, said("")
    # A broker on its way down may still take connections, and answers none.
    assert re.search(r"[Cc]onnection refused|accepts connections and does not answer", said("unavailable")[0])
