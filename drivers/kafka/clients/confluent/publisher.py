"""confluent-kafka behind the seam: publishing."""

import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from notifier_kafka.contract.driver import OnFailure, OnSettled, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException, OutboxFull

from ... import errors, properties
from .. import protocol
from .connection import SUSPICIOUS, Link, forgotten, made, translate
from .holdback import LOOK, Front
from .in_flight import Entry, make_entry

LOG = logging.getLogger(__name__)

SERVE = 0.2  # seconds between looks whether a publisher was closed
UNPLACED = -1  # librdkafka chooses
UNKNOWN = -1  # an offset that no broker tells, as with acks = 0
GRACE = 2.0  # seconds that close gives what is on the wire
GONE = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - public names


class Publisher:
    """librdkafka takes records without blocking; a thread serves its reports."""

    def __init__(self, config: dict[str, Any], on_failure: OnFailure, restore: protocol.Restore) -> None:
        self._link = Link(config)
        self._closed = False
        self._on_failure = on_failure
        self._restore = restore
        self._gone: set[str] = set()
        self._wanted = self._told = self._heard = False
        self._again_at = time.monotonic()
        self._numbers = itertools.count()
        self._on_report = self._report
        self._acknowledged = str(config.get("acks")) != "0"
        self._config = config
        self._producer = made(confluent_kafka.Producer, config, self._link)
        self._front = Front(config, self._go_on_with, self._fail)
        threading.Thread(target=self._serve, name="notifier-kafka-reports", daemon=True).start()

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        if self._closed:
            raise DeliveryFailed("the publisher is closed: publish before closing it")
        place = record.number if isinstance(record, protocol.Placed) else UNPLACED
        entry: Entry = make_entry((self._on_report, next(self._numbers), *record, place, on_settled))
        try:
            if not (self._front.active and self._front.put_aside(entry)):
                self._produce(entry)
        finally:
            # In the middle of it, by another thread or a signal handler.
            if self._closed:
                self._give_up()

    def _produce(self, entry: Entry) -> None:
        # A report brings no headers back, and a failed record has to be whole: so the report calls it.
        _, _, topic, value, key, headers, place, _ = entry
        try:
            self._producer.produce(topic, value, key, place, on_delivery=entry, headers=list(headers))
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
            # Some wait in front of it, or another one takes over what this one had.
            producer, waited = self._producer, self._front.active
            left = int(producer.flush(max(0.0, deadline - time.monotonic())))
            if not waited and not self._front.active and producer is self._producer:
                return left
            if (rest := deadline - time.monotonic()) <= 0:
                # In this order: they go from here to there.
                return max(len(self._front) + len(self._producer), 1)
            time.sleep(min(LOOK, rest))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._give_up()

    def _give_up(self) -> None:
        self._front.hand_over()
        self._producer.purge(in_queue=True, in_flight=False)
        if self._producer.flush(GRACE):
            self._producer.purge(in_queue=True, in_flight=True)
            self._producer.flush(GRACE)

    def _serve(self) -> None:
        while not self._closed:
            try:
                self._producer.poll(SERVE)
            except KafkaException as error:
                self._link.on_error(error.args[0])
            for _ in range(len(self._gone)):  # those that come meanwhile wait: so do the reports
                self._front.hand_over()
                self._find(self._gone.pop())
            try:
                self._look_after()
            except MessagingException as error:
                self._again_at = time.monotonic() + SUSPICIOUS
                LOG.warning("Publishing waits: %s", error)
        # What was put aside since it was closed.
        self._front.hand_over()

    def _look_after(self) -> None:
        """Start anew if need be, and tell of the connections. Raises when a file of TLS has gone, say."""
        heard, self._heard = self._heard, False
        quiet = self._front.look(len(self._producer), heard=heard, connected=self._link.down is None)
        wanted = self._wanted and self._link.fatal and time.monotonic() >= self._again_at
        if wanted or (quiet >= SUSPICIOUS and forgotten(self._producer, self._config)):
            self._renew()
        if (self._link.down is not None) != self._told:
            self._told = not self._told
            said = "Publishing waits: %s" if self._told else "Publishing goes on%s"
            LOG.warning(said, self._link.reason() or "")

    def _renew(self) -> None:
        """Have a new producer go on with all that the old one holds, and with what is offered meanwhile.

        An idempotent one that lost its thread fails all, and one that forgot its brokers sends nothing.
        What was on the way may arrive twice.
        """
        new = made(confluent_kafka.Producer, self._config, self._link)
        LOG.warning("Publishing starts anew: librdkafka does not go on by itself")
        old, self._wanted, self._link.fatal = self._producer, False, False
        self._front.stand_in(len(old))
        self._front.empty(old)
        self._producer, self._link.down = new, None
        # Once more, for those who were in the middle of an offer.
        self._front.empty(old)
        self._front.hand_over()

    def _go_on_with(self, entry: Entry) -> None:
        if self._closed:
            raise DeliveryGivenUp("the publisher was closed before this record was sent")
        self._produce(entry)

    def _find(self, topic: str) -> None:
        """Make a topic again and let librdkafka see it, which by itself looks after minutes."""
        try:
            self._restore(topic)
            self._producer.list_topics(topic, timeout=properties.REQUEST_TIMEOUT)
        except (MessagingException, KafkaException) as error:
            LOG.debug("Looking for topic %s: %s", topic, error)

    def _report(self, entry: Entry, error: KafkaError | None, message: Any) -> None:
        self._heard = True
        if error is not None:
            if self._closed or not self._front.take_back(error, entry):
                self._fail(entry, errors.for_record(translate(error, f"topic {entry.topic}")))
            return
        self._link.down = None
        offset = message.offset()
        if offset is None and self._acknowledged:
            self._send_again(entry)
        elif (on_settled := entry.on_settled) is not None:
            place = Partition(message.topic(), message.partition())
            receipt = Receipt(place, UNKNOWN if offset is None else offset)
            self._tell(entry.topic, lambda: on_settled(receipt))

    def _send_again(self, entry: Entry) -> None:
        """Send what librdkafka says was written, and not where: it saw that a later one was (KAFKA-15591)."""
        try:
            self._produce(entry)
        except MessagingException as error:
            self._fail(entry, error)

    def _fail(self, entry: Entry, error: MessagingException) -> None:
        record, on_settled = Record(*entry[2:6]), entry.on_settled
        self._tell(entry.topic, lambda: on_settled(error) if on_settled else self._on_failure(record, error))

    def _tell(self, topic: str, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:
            # The user's code on our thread: its error must not end publishing.
            LOG.exception("A callback for a record of topic %s raised", topic)
