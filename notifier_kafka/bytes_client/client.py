"""The plain bytes client: a queue of bytes, for programs that do not use notifications.

It is configured by a JSON text with the property names of Apache Kafka's Java client::

    {"Type": "KafkaProducerConfig",
     "Properties": {"bootstrap.servers": "host:9092", "acks": "all", "linger.ms": 1}}

``bootstrap.servers`` may also be a transport URL, such as ``sqlite:///queue.db`` or, for
short, ``sqlite:queue.db``.
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

TURN_SECONDS = 0.02  # the wait for one topic, when several topics are polled in turn
ENDLESS_POLL_SECONDS = 1.0  # one of the waits that make up a poll without a timeout
START = {"earliest": "earliest", "latest": "latest"}
# Java's default: as often as possible within delivery.timeout.ms. A negative number has no limit.
RETRIES = 2**31 - 1
MAX_DIGITS = 19  # as many as the largest Java long has; Python reads some thousand at most


class _Client:
    """What a producer and a consumer share: their configuration and their driver."""

    def __init__(self, config: str, kind: str) -> None:
        self._properties = json_config.read(config, kind)
        conf = cfg.ConfigOpts()
        # Only the JSON text configures this client: no configuration files are read.
        conf([], project="notifier-kafka-client", default_config_files=[], default_config_dirs=[])
        url = TransportURL.parse(conf, json_config.url(self._properties, kind))
        driver_class: type[Driver] = plugins.load(transport.NAMESPACE, str(url.transport))
        self._driver = driver_class(url)

    def _choice(self, name: str, default: str, choices: Mapping[str, Any]) -> Any:
        text = self._properties.get(name, default)
        if text.lower() not in choices:
            raise ConfigurationError(f"property {name}: {text!r} is not one of {', '.join(choices)}")
        return choices[text.lower()]

    def _number(self, name: str, default: int, least: int) -> int:
        text = self._properties.get(name, str(default))
        if text.isdecimal() and len(text) > MAX_DIGITS:
            raise ConfigurationError(f"property {name}: a number of {len(text)} digits is too large")
        if not text.isdecimal() or int(text) < least:
            raise ConfigurationError(f"property {name}: {text!r} is not a whole number of {least} or more")
        return int(text)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class Producer(_Client):
    """Sends bytes. ``config`` has the type ``KafkaProducerConfig``.

    A send returns when the bytes are durable. With ``"producer.type": "async"`` it returns at
    once; a failed record goes to ``on_failure``, or else ``flush`` raises its error.
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
        """Send ``value``. Return its receipt, or None if the client is asynchronous."""
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
        """Wait until all records are delivered or failed; return how many are not.

        Raises ``DeliveryFailed`` for the first record that failed since the last call.
        """
        left = self._publisher.flush(timeout)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return left

    def close(self) -> None:
        """Flush and close. Raises as ``flush`` does, after everything is closed."""
        try:
            # A synchronous send has waited already, and has raised its own error.
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

    With a ``group.id`` positions are committed for the group when the next poll begins and in
    ``close``, or with ``"enable.auto.commit": false`` only by ``commit``. Without a
    ``group.id`` positions end with this consumer. Belongs to one thread.
    """

    def __init__(self, config: str) -> None:
        super().__init__(config, json_config.CONSUMER)
        # In any case: the driver reads its options now, so a wrong one is reported here.
        default_group = self._driver.default_group
        self._group = self._properties.get("group.id") or default_group
        self._start = self._choice("auto.offset.reset", "earliest", START)
        self._commits = self._choice("enable.auto.commit", "true", {"true": True, "false": False})
        self._limit = self._number("max.poll.records", 500, 1)
        # Each of these is by topic. Positions to seek wait until partitions are assigned.
        self._members: dict[str, Subscription] = {}
        self._positions: dict[str, dict[Partition, int]] = {}
        self._uncommitted: dict[str, dict[Partition, int]] = {}
        self._to_seek: dict[str, Mapping[Partition, int]] = {}

    def subscribe(self, topic: str) -> None:
        """Subscribe to one more topic, which need not exist yet."""
        if topic in self._members:
            return
        if self._group is None:
            self._members[topic] = self._driver.subscribe([topic], None, self._start)
            return
        # A new member for all topics: when members of one group subscribed to different topics,
        # some of them were seen to get nothing.
        topics = [*self._members, topic]
        own = {
            each: {p: there[p] for p in self._owned(each, there)} for each, there in self._positions.items()
        }
        member = self._driver.subscribe(topics, self._group, self._start)
        self._leave()
        self._to_seek = own | self._to_seek
        self._members = dict.fromkeys(topics, member)

    def poll(self, timeout_ms: int) -> list[bytes]:
        """Return new values as soon as there are any. A negative timeout waits without limit."""
        if not self._members:
            raise ConfigurationError("nothing to poll: call subscribe first")
        if self._commits:
            self.commit()
        deadline = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000
        members = list(dict.fromkeys(self._members.values()))
        while True:
            left = ENDLESS_POLL_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            for member in members:
                if found := self._poll(member, left if len(members) == 1 else min(left, TURN_SECONDS)):
                    return found
            if deadline is not None and time.monotonic() >= deadline:
                return []

    def poll_string(self, timeout_ms: int) -> list[str]:
        """Poll text. Bytes that are not UTF-8 become U+FFFD."""
        return [value.decode(errors="replace") for value in self.poll(timeout_ms)]

    def position(self, topic: str) -> dict[int, int]:
        """Return the next offset by partition number, for the partitions polled so far."""
        return {partition.number: offset for partition, offset in self._positions.get(topic, {}).items()}

    def rewind(self, topic: str, to: Literal["earliest"] | float | Mapping[int, int] = "earliest") -> None:
        """Move the position in a topic to its beginning, a time, or offsets by partition.

        A time is in seconds since the epoch. It moves the partitions that this consumer has, or
        if it has none yet, the first ones that it gets.
        """
        if topic not in self._members:
            raise ConfigurationError(f"topic {topic} is not subscribed to")
        if isinstance(to, Mapping):
            positions = {Partition(topic, number): offset for number, offset in to.items()}
        else:
            since = None if to == "earliest" else float(to)
            positions = {span.partition: span.start for span in self._driver.spans([topic], since)}
        self._positions.pop(topic, None)
        self._uncommitted.pop(topic, None)
        self._to_seek[topic] = positions
        self._seek(topic)

    def commit(self) -> None:
        """Commit the positions of everything polled so far for the group."""
        for topic in self._uncommitted.keys() - self._to_seek.keys():  # a new member has no partitions yet
            positions = self._uncommitted[topic]
            try:
                self._members[topic].commit(positions)
            except CommitRefused as refused:
                # Another member has those partitions, and begins at the last committed position.
                for gone in refused.partitions:
                    positions.pop(Partition(*gone), None)
                    self._positions[topic].pop(Partition(*gone), None)
                with contextlib.suppress(CommitRefused):  # refused again: these are lost as well
                    self._members[topic].commit(positions)
            # Commit only once: the positions would be wrong in a topic that was recreated.
            del self._uncommitted[topic]

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
        topics = [topic for topic, each in self._members.items() if each is member]
        moved: set[Partition] = set()
        failure: MessagingException | None = None
        for topic in self._to_seek.keys() & set(topics):
            wanted = self._to_seek[topic]
            try:
                moved |= set(self._seek(topic))
            except MessagingException as error:
                # These partitions will be read again after the seek. Records of others are returned.
                failure = error
                moved |= set(wanted)
        values = []
        reached: dict[Partition, int] = {}
        for record, partition, offset, _ in deliveries:
            if partition not in moved:
                reached[partition] = offset + 1
                if record.value is not None:
                    values.append(record.value)
        for partition, offset in reached.items():
            for positions in (self._positions, self._uncommitted):
                positions.setdefault(partition.topic, {})[partition] = offset
        if values:
            # The next poll begins with the other topics, however much these hold.
            self._members |= {topic: self._members.pop(topic) for topic in topics}
        elif failure is not None:
            raise failure
        return values

    def _seek(self, topic: str) -> Collection[Partition]:
        """Seek the positions that ``rewind`` asked for; return the partitions that moved.

        Only a poll assigns partitions, and a program may rewind before its first poll.
        """
        member, positions = self._members[topic], self._to_seek[topic]
        owned = self._owned(topic, positions)
        if owned or not positions:
            member.seek(positions)
            del self._to_seek[topic]
        return owned

    def _owned(self, topic: str, positions: Collection[Partition]) -> set[Partition]:
        try:
            # A commit of 0 moves no position back. It is the way to learn which partitions are owned.
            self._members[topic].commit(dict.fromkeys(positions, 0))
        except CommitRefused as refused:
            return {each for each in positions if each not in refused.partitions}
        return set(positions)
