"""The plain bytes client: a queue of bytes for programs that want no notifications.

Configured by one JSON text whose property names are those of Apache Kafka's Java client::

    {"Type": "KafkaProducerConfig",
     "Properties": {"bootstrap.servers": "host:9092", "acks": "all", "linger.ms": 1}}

``bootstrap.servers`` may also be a transport URL, such as ``sqlite:///queue.db``, which
``sqlite:queue.db`` says as well.
"""

import contextlib
import time
from collections.abc import Collection, Mapping
from typing import Any, Literal, Self

from oslo_config import cfg

from notifier_kafka.bytes_client import json_config
from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Driver, Limits, OnFailure, Partition, Receipt, Record, Subscription
from notifier_kafka.errors import CommitRefused, ConfigurationError, DeliveryFailed, MessagingException
from notifier_kafka.publishing import transport
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter

SLICE = 0.02  # seconds that one topic is waited for when there are several
WAIT_FOREVER = 1.0  # seconds of one of the waits that together have no end
START = {"earliest": "earliest", "latest": "latest"}
# As often as it takes, within delivery.timeout.ms: Java's default. Less than 0 would be for ever.
RETRIES = 2**31 - 1
DIGITS = 19  # those of Java's largest; Python reads no more than some thousand


class _Client:
    """What a producer and a consumer share: their configuration and their driver."""

    def __init__(self, config: str, kind: str) -> None:
        self._properties = json_config.read(config, kind)
        conf = cfg.ConfigOpts()
        # Nothing but the JSON text configures this client: no file of the program's directory.
        conf([], project="notifier-kafka-client", default_config_files=[], default_config_dirs=[])
        url = TransportURL.parse(conf, json_config.url(self._properties, kind))
        driver_class: type[Driver] = plugins.load(transport.NAMESPACE, str(url.transport))
        self._driver = driver_class(url)

    def _choice(self, name: str, default: str, choices: Mapping[str, Any]) -> Any:
        text = self._properties.get(name, default)
        if text.lower() not in choices:
            raise ConfigurationError(f"property {name}: {text!r} is none of {', '.join(choices)}")
        return choices[text.lower()]

    def _number(self, name: str, default: int, least: int) -> int:
        text = self._properties.get(name, str(default))
        if text.isdecimal() and len(text) > DIGITS:
            raise ConfigurationError(f"property {name}: a number of {len(text)} digits is too large")
        if not text.isdecimal() or int(text) < least:
            raise ConfigurationError(f"property {name}: {text!r} is no whole number from {least} on")
        return int(text)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class Producer(_Client):
    """Sends bytes. ``config`` has the type ``KafkaProducerConfig``.

    A send returns once the bytes are durable; with ``"producer.type": "async"`` at once,
    and what cannot be delivered goes to ``on_failure``, or is raised by ``flush``.
    """

    def __init__(self, config: str, on_failure: OnFailure | None = None) -> None:
        super().__init__(config, json_config.PRODUCER)
        self._wait = self._choice("producer.type", "sync", {"sync": True, "async": False})
        self._patience = float(json_config.seconds(self._properties.get("delivery.timeout.ms", "120000")))
        self._failure: DeliveryFailed | None = None
        room = self._number("buffer.memory", Limits().bytes, 1)
        limits = Limits(bytes=room, retry=self._number("retries", RETRIES, 0))
        self._publisher = self._driver.publisher(on_failure or self._keep, limits)

    def send(self, topic: str, value: bytes) -> Receipt | None:
        """Send ``value``; say where it lies, unless the client is asynchronous."""
        if not isinstance(value, bytes):
            raise TypeError(f"send takes bytes, not {type(value).__name__}; send_string takes text")
        if not self._wait:
            self._publisher.offer(Record(topic, value))
            return None
        waiter = DeliveryWaiter()
        waiter.expect()
        self._publisher.offer(Record(topic, value), waiter.settle)
        (receipt,) = waiter.receipts(self._patience, self._driver.trouble)
        return receipt

    def send_string(self, topic: str, text: str) -> Receipt | None:
        """Send ``text`` in UTF-8."""
        return self.send(topic, text.encode())

    def flush(self, timeout: float = 120.0) -> int:
        """Wait until everything is settled; return how many sends are not.

        Raises ``DeliveryFailed`` for the first that failed since the last call.
        """
        left = self._publisher.flush(timeout)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return left

    def close(self) -> None:
        """Flush and close. Raises as ``flush`` does, after everything is closed."""
        try:
            # A synchronous send has waited, and has raised what it waited for in vain.
            left = 0 if self._wait else self.flush(self._patience)
        finally:
            self._publisher.close()
            super().close()
        if left:
            raise DeliveryFailed(f"{left} sends were given up after {self._patience:g} s")

    def _keep(self, record: Record, error: Exception) -> None:
        self._failure = self._failure or DeliveryFailed(f"topic {record.topic}: {error}")


class Consumer(_Client):
    """Polls bytes. ``config`` has the type ``KafkaConsumerConfig``.

    With a ``group.id`` the position of each topic is kept for the group: when the next
    poll begins, and at the end, or with ``"enable.auto.commit": false`` by ``commit``.
    Without one it is this consumer's own and ends with it. Belongs to one thread.
    """

    def __init__(self, config: str) -> None:
        super().__init__(config, json_config.CONSUMER)
        # The driver is asked first: it then reads its options, and a wrong one is told here.
        default_group = self._driver.default_group
        self._group = self._properties.get("group.id") or default_group
        self._start = self._choice("auto.offset.reset", "earliest", START)
        self._commits = self._choice("enable.auto.commit", "true", {"true": True, "false": False})
        self._limit = self._number("max.poll.records", 500, 1)
        # Of each topic what gets it, what comes next, what of that the group does not know yet, and
        # where to go once that is possible.
        self._members: dict[str, Subscription] = {}
        self._positions: dict[str, dict[Partition, int]] = {}
        self._fresh: dict[str, dict[Partition, int]] = {}
        self._wanted: dict[str, Mapping[Partition, int]] = {}

    def subscribe(self, topic: str) -> None:
        """Listen to one more topic, which may not exist yet."""
        if topic in self._members:
            return
        if self._group is None:
            self._members[topic] = self._driver.subscribe([topic], None, self._start)
            return
        # One member for all topics, made anew: in a group whose members listen to different
        # topics some were seen to get nothing.
        topics = [*self._members, topic]
        own = {
            each: {p: there[p] for p in self._owned(each, there)} for each, there in self._positions.items()
        }
        member = self._driver.subscribe(topics, self._group, self._start)
        self._leave()
        self._wanted = own | self._wanted
        self._members = dict.fromkeys(topics, member)

    def poll(self, timeout_ms: int) -> list[bytes]:
        """Return what has come, as soon as there is any; a negative timeout waits for ever."""
        if not self._members:
            raise ConfigurationError("nothing to poll: call subscribe first")
        if self._commits:
            self.commit()
        deadline = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000
        members = list(dict.fromkeys(self._members.values()))
        while True:
            left = WAIT_FOREVER if deadline is None else max(0.0, deadline - time.monotonic())
            for member in members:
                if found := self._poll(member, left if len(members) == 1 else min(left, SLICE)):
                    return found
            if deadline is not None and time.monotonic() >= deadline:
                return []

    def poll_string(self, timeout_ms: int) -> list[str]:
        """Poll text; what is not UTF-8 has U+FFFD in its place."""
        return [value.decode(errors="replace") for value in self.poll(timeout_ms)]

    def position(self, topic: str) -> dict[int, int]:
        """Return the next offset by partition number, of what was polled so far."""
        return {partition.number: offset for partition, offset in self._positions.get(topic, {}).items()}

    def rewind(self, topic: str, to: Literal["earliest"] | float | Mapping[int, int] = "earliest") -> None:
        """Move the position of a topic: to its beginning, a time, or offsets by partition.

        A time is in seconds since the epoch. Reaches the partitions this consumer has, or
        else those that it gets first.
        """
        if topic not in self._members:
            raise ConfigurationError(f"topic {topic} is not subscribed to")
        if isinstance(to, Mapping):
            positions = {Partition(topic, number): offset for number, offset in to.items()}
        else:
            since = None if to == "earliest" else float(to)
            positions = {span.partition: span.start for span in self._driver.spans([topic], since)}
        self._positions.pop(topic, None)
        self._fresh.pop(topic, None)
        self._wanted[topic] = positions
        self._seek(topic)

    def commit(self) -> None:
        """Keep the positions of what was polled so far for the group."""
        for topic in self._fresh.keys() - self._wanted.keys():  # a new member has no partitions yet
            positions = self._fresh[topic]
            try:
                self._members[topic].commit(positions)
            except CommitRefused as refused:
                # Another member has those partitions and begins where this group last was.
                for gone in refused.partitions:
                    positions.pop(Partition(*gone), None)
                    self._positions[topic].pop(Partition(*gone), None)
                with contextlib.suppress(CommitRefused):  # refused once more: of no use to anybody
                    self._members[topic].commit(positions)
            # Only once: what was committed says nothing of a topic that is made again.
            del self._fresh[topic]

    def close(self) -> None:
        try:
            self._leave()
        finally:
            super().close()

    def _leave(self) -> None:
        try:
            if self._commits:
                self.commit()
        finally:
            for member in self._members.values():
                member.close()

    def _poll(self, member: Subscription, timeout: float) -> list[bytes]:
        deliveries = member.poll(self._limit, timeout)
        topics = [topic for topic, gets_it in self._members.items() if gets_it is member]
        moved: set[Partition] = set()
        trouble: MessagingException | None = None
        for topic in self._wanted.keys() & set(topics):
            wanted = self._wanted[topic]
            try:
                moved |= set(self._seek(topic))
            except MessagingException as error:
                # What came of these comes again once they moved; what came of others must go on.
                trouble = error
                moved |= set(wanted)
        values = []
        reached: dict[Partition, int] = {}
        for record, partition, offset, _ in deliveries:
            if partition not in moved:
                reached[partition] = offset + 1
                if record.value is not None:
                    values.append(record.value)
        for partition, offset in reached.items():
            for kept in (self._positions, self._fresh):
                kept.setdefault(partition.topic, {})[partition] = offset
        if values:
            # The others have their turn first the next time, however much these hold.
            self._members |= {topic: self._members.pop(topic) for topic in topics}
        elif trouble is not None:
            raise trouble
        return values

    def _seek(self, topic: str) -> Collection[Partition]:
        """Go where ``rewind`` wanted to, once there are partitions; say which moved.

        Only a poll gives partitions, and a program rewinds before its first.
        """
        member, positions = self._members[topic], self._wanted[topic]
        owned = self._owned(topic, positions)
        if owned or not positions:
            member.seek(positions)
            del self._wanted[topic]
        return owned

    def _owned(self, topic: str, positions: Collection[Partition]) -> set[Partition]:
        try:
            # Moves no position back; it is how a subscription says what it owns.
            self._members[topic].commit(dict.fromkeys(positions, 0))
        except CommitRefused as refused:
            return {each for each in positions if each not in refused.partitions}
        return set(positions)
