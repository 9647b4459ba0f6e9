"""The publisher and the listeners of the demonstration, on topics and with a pool of their own."""

import collections
import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from notifier_kafka import target
from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Limits, Receipt, Record
from notifier_kafka.errors import MessagingException, TopicNotFound
from notifier_kafka.listening import listener
from notifier_kafka.notification import PRIORITIES, Notification
from notifier_kafka.publishing import ordering_keys
from notifier_kafka.publishing.channels import channel
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.wire import topic_names

LISTENERS = 2
BATCH_NOTIFICATIONS = 1_000
STALL_SECONDS = 60.0  # without progress, after which the demonstration gives up
POLL_SECONDS = 0.05
MALFORMED_VALUES = (
    b"not JSON",
    b"\xff\xfe\x00",
    b'["a", "list"]',
    b'{"oslo.version": "9.9", "oslo.message": "{}"}',
    None,
)


class _CountingEndpoint:
    """An endpoint that counts calls, and each notification once. Only one listener's thread calls it."""

    def __init__(self) -> None:
        self.event_types: dict[str, str] = {}  # by message id
        self.calls = 0

    def info(self, _ctxt: Any, _publisher_id: str, event_type: str, _payload: Any, metadata: Any) -> None:
        self.event_types[metadata["message_id"]] = event_type
        self.calls += 1

    audit = sample = error = info


class Sandbox:
    """Publishes and listens on its own topics, and counts on both sides."""

    def __init__(self, transport: NotificationTransport) -> None:
        self._transport = transport
        self.topic = f"notifier-kafka-demo-{uuid.uuid4().hex[:8]}"
        self.published: collections.Counter[str] = collections.Counter()
        self.duplicates_published = self.malformed_published = 0
        self._endpoints = [_CountingEndpoint() for _ in range(LISTENERS)]
        self._listeners = [
            listener.get_notification_listener(
                transport, [target.Target(topic=self.topic)], [endpoint], pool=self.topic
            )
            for endpoint in self._endpoints
        ]
        transport.prepare()
        make_channel = plugins.load(channel.NAMESPACE, "messagingv2")
        self._channel = make_channel(transport.conf, [self.topic], transport)
        self._sending = channel.Sending(-1, ordering_keys.load("publisher_id"))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Run the listeners; delete the topics afterwards."""
        with contextlib.ExitStack() as stack:
            stack.callback(delete_topics, self._transport, self.topic)
            for each in self._listeners:
                stack.enter_context(each)
            yield

    @property
    def records(self) -> int:
        """How many records were published."""
        return self.published.total() + self.duplicates_published + self.malformed_published

    @property
    def lost(self) -> int:
        """How many records the log did not accept."""
        counts = self._transport.counters.counts()
        return sum(count for name, count in counts.items() if name.startswith("lost."))

    @property
    def handled(self) -> collections.Counter[str]:
        """How many notifications of each event type were handled, each counted once."""
        event_types: dict[str, str] = {}
        for endpoint in self._endpoints:
            event_types |= endpoint.event_types.copy()  # atomic: the listener's thread may add to it
        return collections.Counter(event_types.values())

    @property
    def redelivered(self) -> int:
        """How many deliveries were not the first of their notification."""
        return sum(endpoint.calls for endpoint in self._endpoints) - self.handled.total()

    @property
    def malformed_received(self) -> int:
        """How many malformed records the listeners received."""
        return sum(each.stats()["malformed"] for each in self._listeners)

    def publish(self, notifications: Sequence[Notification], duplicates: Sequence[Notification] = ()) -> None:
        """Publish notifications, and then duplicates of some of them."""
        every = [*notifications, *duplicates]
        bar = Bar("publish", len(every))
        for start in range(0, len(every), BATCH_NOTIFICATIONS):
            self._channel.send(every[start : start + BATCH_NOTIFICATIONS], self._sending)
            # Without this, a log that is slower than we publish would lose notifications.
            self._transport.flush(STALL_SECONDS)
            bar.show(start)
        self.published.update(str(each.event_type) for each in notifications)
        self.duplicates_published += len(duplicates)
        bar.end(f"{len(every):,}")

    def publish_malformed(self) -> None:
        """Publish records that are not notifications."""
        topic = topic_names.bus_topic(self.topic, "info", self._transport.driver.virtual_host)
        outcomes: list[Receipt | MessagingException] = []
        publisher = self._transport.driver.publisher(lambda _record, error: outcomes.append(error), Limits())
        for value in MALFORMED_VALUES:
            publisher.offer(Record(topic, value), outcomes.append)
        publisher.flush(STALL_SECONDS)
        publisher.close()
        self.malformed_published += sum(isinstance(outcome, Receipt) for outcome in outcomes)

    def wait_until_handled(self) -> None:
        """Wait until everything published was handled, or there is no more progress."""
        expected = self.records - self.lost
        bar, done, progressed = Bar("listen", expected), 0, time.monotonic()
        while done < expected and time.monotonic() - progressed < STALL_SECONDS:
            time.sleep(POLL_SECONDS)
            before, done = done, sum(endpoint.calls for endpoint in self._endpoints) + self.malformed_received
            if done != before:
                progressed = time.monotonic()
            bar.show(done)
        bar.end(f"{done:,}")


def delete_topics(transport: NotificationTransport, name: str) -> None:
    """Delete the topics on the log that belong to a topic of notifications and a pool of the same name."""
    admin, host = transport.driver.admin(), transport.driver.virtual_host
    topics = [topic_names.bus_topic(name, priority, host) for priority in PRIORITIES]
    requeue_topics = [topic_names.requeue_topic(name, topic) for topic in topics]
    for topic in (*topics, *requeue_topics, topic_names.dead_letter_topic(name)):
        with contextlib.suppress(TopicNotFound):
            admin.delete_topic(topic)
