"""Publishers and listeners of the demonstration, on topics and with a pool that nobody else uses."""

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
STEP = 1_000
PATIENCE = 60.0  # seconds without any progress after which the demonstration gives up
MALFORMED = (
    b"not JSON",
    b"\xff\xfe\x00",
    b'["a", "list"]',
    b'{"oslo.version": "9.9", "oslo.message": "{}"}',
    None,
)


class _Tally:
    """An endpoint that counts each notification once. Belongs to one listener's thread."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.calls = 0

    def info(self, _ctxt: Any, _publisher_id: str, event_type: str, _payload: Any, metadata: Any) -> None:
        self.types[metadata["message_id"]] = event_type
        self.calls += 1

    audit = sample = error = info


class Stage:
    """Publishes, listens, and counts on both sides."""

    def __init__(self, transport: NotificationTransport) -> None:
        self._transport = transport
        self.name = f"notifier-kafka-demo-{uuid.uuid4().hex[:8]}"
        self.published: collections.Counter[str] = collections.Counter()
        self.again = self.malformed = 0
        self._tallies = [_Tally() for _ in range(LISTENERS)]
        self._listeners = [
            listener.get_notification_listener(
                transport, [target.Target(topic=self.name)], [tally], pool=self.name
            )
            for tally in self._tallies
        ]
        transport.prepare()
        make = plugins.load(channel.NAMESPACE, "messagingv2")
        self._channel = make(transport.conf, [self.name], transport)
        self._how = channel.Sending(-1, ordering_keys.load("publisher_id"))

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Listen; leave no topic behind."""
        with contextlib.ExitStack() as stack:
            stack.callback(delete_topics, self._transport, self.name)
            for each in self._listeners:
                stack.enter_context(each)
            yield

    @property
    def records(self) -> int:
        """How many records were published."""
        return self.published.total() + self.again + self.malformed

    @property
    def lost(self) -> int:
        """How many the log did not take."""
        counts = self._transport.counters.counts()
        return sum(count for name, count in counts.items() if name.startswith("lost."))

    @property
    def handled(self) -> collections.Counter[str]:
        """How many were handled, each counted once."""
        types: dict[str, str] = {}
        for tally in self._tallies:
            types |= tally.types.copy()  # in one step, as its listener may go on
        return collections.Counter(types.values())

    @property
    def delivered_again(self) -> int:
        """How many were handled more than once."""
        return sum(tally.calls for tally in self._tallies) - self.handled.total()

    @property
    def set_aside(self) -> int:
        """How many records were no notifications."""
        return sum(each.stats()["malformed"] for each in self._listeners)

    def publish(self, notifications: Sequence[Notification], again: Sequence[Notification] = ()) -> None:
        """Publish, and those that come again once more."""
        bar, whole = Bar("publish", len(notifications) + len(again)), [*notifications, *again]
        for start in range(0, len(whole), STEP):
            self._channel.send(whole[start : start + STEP], self._how)
            # Or it would publish as fast as it can, and drop what a slower log has no room for.
            self._transport.flush(PATIENCE)
            bar.show(start)
        self.published.update(str(each.event_type) for each in notifications)
        self.again += len(again)
        bar.end(f"{len(whole):,}")

    def publish_malformed(self) -> None:
        """Publish what is no notification."""
        name = topic_names.bus_topic(self.name, "info", self._transport.driver.virtual_host)
        fates: list[Receipt | MessagingException] = []
        publisher = self._transport.driver.publisher(lambda _record, error: fates.append(error), Limits())
        for value in MALFORMED:
            publisher.offer(Record(name, value), fates.append)
        publisher.flush(PATIENCE)
        publisher.close()
        self.malformed += sum(isinstance(fate, Receipt) for fate in fates)

    def wait(self) -> None:
        """Wait until all that was published was handled, or nothing moves any more."""
        expected = self.records - self.lost
        bar, done, moved = Bar("listen", expected), 0, time.monotonic()
        while done < expected and time.monotonic() - moved < PATIENCE:
            time.sleep(0.05)
            before, done = done, sum(tally.calls for tally in self._tallies) + self.set_aside
            if done != before:
                moved = time.monotonic()
            bar.show(done)
        bar.end(f"{done:,}")


def delete_topics(transport: NotificationTransport, name: str) -> None:
    """Delete every topic on the bus that comes of one name."""
    admin, host = transport.driver.admin(), transport.driver.virtual_host
    names = [topic_names.bus_topic(name, priority, host) for priority in PRIORITIES]
    returns = [topic_names.requeue_topic(name, each) for each in names]
    for each in (*names, *returns, topic_names.dead_letter_topic(name)):
        with contextlib.suppress(TopicNotFound):
            admin.delete_topic(each)
