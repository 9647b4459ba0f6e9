"""confluent-kafka behind the seam: publishing."""

import itertools
import logging
import threading
import time
from collections.abc import Callable
from types import MethodType
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from notifier_kafka.driver import OnFailure, OnSettled, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException, OutboxFull

from .. import errors, properties
from . import client
from .confluent_link import SUSPICIOUS, Link, forgotten, made, translate
from .confluent_takeover import Entry, Takeover

LOG = logging.getLogger(__name__)

SERVE = 0.2  # seconds between looks whether a publisher was closed
UNPLACED = -1  # librdkafka chooses
UNKNOWN = -1  # an offset that no broker tells, as with acks = 0
GRACE = 2.0  # seconds that close gives what is on the wire
LOOK = 0.05
GONE = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - public names


class Publisher:
    """librdkafka takes records without blocking; a thread serves its reports."""

    def __init__(self, config: dict[str, Any], on_failure: OnFailure, restore: client.Restore) -> None:
        self._link = Link(config)
        self._closed = False
        self._on_failure = on_failure
        self._restore = restore
        self._gone: set[str] = set()
        self._wanted = False
        self._quiet_since = time.monotonic()
        self._takeover: Takeover | None = None
        self._numbers = itertools.count()
        self._acknowledged = str(config.get("acks")) != "0"
        self._config = config
        self._producer = made(confluent_kafka.Producer, config, self._link)
        threading.Thread(target=self._serve, name="notifier-kafka-reports", daemon=True).start()

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        if self._closed:
            raise DeliveryFailed("the publisher is closed: publish before closing it")
        takeover = self._takeover
        entry = (next(self._numbers), record, on_settled)
        if takeover is not None and takeover.put_aside(entry):
            return
        self._produce(entry)

    def _produce(self, entry: Entry) -> None:
        _, record, _ = entry
        topic, value, key, headers = record
        # A report brings no headers back, and a failed record has to be whole: so each goes with
        # a callable that holds it, and a bound method is the cheapest one to make.
        report = MethodType(self._report, entry)
        place = record.number if isinstance(record, client.Placed) else UNPLACED
        try:
            self._producer.produce(topic, value, key, place, on_delivery=report, headers=list(headers))
        except BufferError:
            raise OutboxFull(f"{len(self._producer)} records wait already: Kafka is slow or away") from None
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError._FATAL:  # noqa: SLF001 - its public name
                self._wanted = True
                raise OutboxFull(f"the producer starts anew: {error.args[0].str()}") from None
            if code in GONE:
                self._gone.add(topic)
            raise errors.for_record(translate(error.args[0], f"topic {topic}")) from None
        except (TypeError, ValueError) as error:
            raise DeliveryFailed(f"topic {topic}: {error}") from None

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while True:
            producer = self._producer
            left = int(producer.flush(max(0.0, deadline - time.monotonic())))
            if self._takeover is None and producer is self._producer:
                return left
            # Another one takes over what this one had.
            time.sleep(LOOK)
            if time.monotonic() >= deadline:
                return max(left, 1)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._producer.purge(in_queue=True, in_flight=False)
            if self._producer.flush(GRACE):
                self._producer.purge(in_queue=True, in_flight=True)
                self._producer.flush(GRACE)

    def _serve(self) -> None:
        told = False
        while not self._closed:
            served = 0
            try:
                served = self._producer.poll(SERVE)
            except KafkaException as error:
                self._link.on_error(error.args[0])
            while self._gone:
                self._find(self._gone.pop())
            if (self._wanted and self._link.fatal) or self._is_forgotten(served):
                self._renew()
            down = self._link.down
            if (down is not None) != told:
                told = not told
                LOG.warning(
                    "Publishing waits: %s" if told else "Publishing goes on%s", self._link.reason() or ""
                )

    def _is_forgotten(self, served: int) -> bool:
        now = time.monotonic()
        if served or not len(self._producer):
            self._quiet_since = now
        if now - self._quiet_since < SUSPICIOUS:
            return False
        self._quiet_since = now
        return forgotten(self._producer, self._config)

    def _renew(self) -> None:
        """Have a new producer go on with all that the old one holds, and with what is offered meanwhile.

        An idempotent one that lost its thread fails all, and one that forgot its brokers sends nothing.
        What was on the way may arrive twice.
        """
        LOG.warning("Publishing starts anew: librdkafka does not go on by itself")
        old, self._wanted, self._link.fatal = self._producer, False, False
        new = made(confluent_kafka.Producer, self._config, self._link)
        self._takeover = Takeover(self._config["queue.buffering.max.messages"])
        self._takeover.empty(old)
        self._producer, self._link.down = new, None
        # Once more, for those who were in the middle of an offer.
        self._takeover.empty(old)
        self._takeover.hand_over(self._go_on_with)
        self._takeover = None

    def _go_on_with(self, entry: Entry) -> None:
        while not self._closed:
            try:
                self._produce(entry)
            except OutboxFull:
                self._producer.poll(LOOK)
            except MessagingException as error:
                self._fail(entry, error)
                return
            else:
                return
        self._fail(entry, DeliveryGivenUp("the publisher was closed before this record was sent"))

    def _find(self, topic: str) -> None:
        """Make a topic again and let librdkafka see it, which by itself looks after minutes."""
        try:
            self._restore(topic)
            self._producer.list_topics(topic, timeout=properties.REQUEST_TIMEOUT)
        except (MessagingException, KafkaException) as error:
            LOG.debug("Looking for topic %s: %s", topic, error)

    def _report(self, entry: Entry, error: KafkaError | None, message: Any) -> None:
        _, record, on_settled = entry
        if error is not None:
            if (takeover := self._takeover) is None or not takeover.take_back(error, entry):
                self._fail(entry, errors.for_record(translate(error, f"topic {record.topic}")))
            return
        self._link.down = None
        offset = message.offset()
        if offset is None and self._acknowledged:
            self._send_again(entry)
        elif on_settled is not None:
            place = Partition(message.topic(), message.partition())
            receipt = Receipt(place, UNKNOWN if offset is None else offset)
            self._tell(record, lambda: on_settled(receipt))

    def _send_again(self, entry: Entry) -> None:
        """Send what librdkafka says was written, and not where: it saw that a later one was (KAFKA-15591)."""
        try:
            self._produce(entry)
        except MessagingException as error:
            self._fail(entry, error)

    def _fail(self, entry: Entry, error: MessagingException) -> None:
        _, record, on_settled = entry
        self._tell(record, lambda: on_settled(error) if on_settled else self._on_failure(record, error))

    def _tell(self, record: Record, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:
            # The user's code on our thread: its error must not end publishing.
            LOG.exception("A callback for a record of topic %s raised", record.topic)
