"""Publishing with confluent-kafka."""

import itertools
import logging
import threading
import time
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from notifier_kafka.contract import callbacks
from notifier_kafka.contract.driver import OnFailure, OnSettled, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException, OutboxFull

from ... import errors, properties
from .. import protocol
from .connection import SUSPICIOUS_SECONDS, ConnectionState, create, has_lost_brokers, translate
from .holdback import CHECK_SECONDS, HoldbackQueue
from .in_flight import InFlight, make_in_flight

LOG = logging.getLogger(__name__)

CLOSE_CHECK_SECONDS = 0.2
ANY_PARTITION = -1  # librdkafka chooses
UNKNOWN_OFFSET = -1  # with acks = 0 no broker tells it
CLOSE_TIMEOUT_SECONDS = 2.0  # for requests under way
TOPIC_GONE = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - public names


class Publisher:
    """librdkafka takes records without blocking; a thread of ours serves its reports."""

    def __init__(self, config: dict[str, Any], on_failure: OnFailure, restore: protocol.Restore) -> None:
        self._state = ConnectionState(config)
        self._closed = False
        self._on_failure = on_failure
        self._restore = restore
        self._topics_gone: set[str] = set()
        self._renewal_wanted = self._outage_logged = self._got_report = False
        self._again_at = time.monotonic()
        self._numbers = itertools.count()
        self._on_report = self._report
        self._acknowledged = str(config.get("acks")) != "0"
        self._config = config
        self._producer = create(confluent_kafka.Producer, config, self._state)
        self._holdback = HoldbackQueue(config, self._produce_unless_closed, self._fail)
        threading.Thread(target=self._serve, name="notifier-kafka-reports", daemon=True).start()

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        if self._closed:
            raise DeliveryFailed("the publisher is closed: publish before closing it")
        partition = record.number if isinstance(record, protocol.AssignedRecord) else ANY_PARTITION
        entry: InFlight = make_in_flight(
            (self._on_report, next(self._numbers), *record, partition, on_settled)
        )
        try:
            if not (self._holdback.active and self._holdback.hold_back(entry)):
                self._produce(entry)
        finally:
            # Another thread or a signal handler may have closed it in the middle of this.
            if self._closed:
                self._give_up()

    def _produce(self, entry: InFlight) -> None:
        # A report has no headers, and a failed record must be complete: so the record itself is called.
        _, _, topic, value, key, headers, partition, _ = entry
        try:
            self._producer.produce(topic, value, key, partition, on_delivery=entry, headers=list(headers))
        except BufferError:
            raise OutboxFull(f"{len(self._producer)} records wait already: Kafka is slow or away") from None
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError._FATAL:  # noqa: SLF001 - its public name
                self._renewal_wanted = True
                raise OutboxFull(f"the producer is being replaced: {error.args[0].str()}") from None
            if code in TOPIC_GONE:
                self._topics_gone.add(topic)
            raise errors.for_record(translate(error.args[0], f"topic {topic}")) from None
        except (TypeError, ValueError) as error:
            raise DeliveryFailed(f"topic {topic}: {error}") from None

    def flush(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while True:
            # Some records may be held back, or a new producer may take over what this one had.
            producer, waited = self._producer, self._holdback.active
            left = int(producer.flush(max(0.0, deadline - time.monotonic())))
            if not waited and not self._holdback.active and producer is self._producer:
                return left
            if (rest := deadline - time.monotonic()) <= 0:
                # In this order, because records go from the first to the second.
                return max(len(self._holdback) + len(self._producer), 1)
            time.sleep(min(CHECK_SECONDS, rest))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._give_up()

    def _give_up(self) -> None:
        self._holdback.release()
        self._producer.purge(in_queue=True, in_flight=False)
        if self._producer.flush(CLOSE_TIMEOUT_SECONDS):
            self._producer.purge(in_queue=True, in_flight=True)
            self._producer.flush(CLOSE_TIMEOUT_SECONDS)

    def _serve(self) -> None:
        while not self._closed:
            try:
                self._producer.poll(CLOSE_CHECK_SECONDS)
            except KafkaException as error:
                self._state.on_error(error.args[0])
            for _ in range(len(self._topics_gone)):  # later ones wait, because the reports do too
                self._holdback.release()
                self._recreate_topic(self._topics_gone.pop())
            try:
                self._look_after()
            except MessagingException as error:
                self._again_at = time.monotonic() + SUSPICIOUS_SECONDS
                LOG.warning("Publishing waits: %s", error)
        # What was held back since it was closed.
        self._holdback.release()

    def _look_after(self) -> None:
        """Replace the producer if needed; log outages. Raises when a TLS file was removed, for example."""
        heard, self._got_report = self._got_report, False
        quiet = self._holdback.check(len(self._producer), heard=heard, connected=self._state.down is None)
        wanted = self._renewal_wanted and self._state.fatal and time.monotonic() >= self._again_at
        if wanted or (quiet >= SUSPICIOUS_SECONDS and has_lost_brokers(self._producer, self._config)):
            self._renew()
        if (self._state.down is not None) != self._outage_logged:
            self._outage_logged = not self._outage_logged
            text = "Publishing waits: %s" if self._outage_logged else "Publishing goes on%s"
            LOG.warning(text, self._state.reason() or "")

    def _renew(self) -> None:
        """Have a new producer send what the old one has, and what is offered meanwhile.

        An idempotent producer with a fatal error fails all records, and one that lost its brokers sends
        nothing. Records that were in flight may arrive twice.
        """
        new = create(confluent_kafka.Producer, self._config, self._state)
        LOG.warning("Publishing continues with a new producer: librdkafka does not recover by itself")
        old, self._renewal_wanted, self._state.fatal = self._producer, False, False
        self._holdback.hold_for_new_producer(len(old))
        self._holdback.purge(old)
        self._producer, self._state.down = new, None
        # Once more, for threads that were in the middle of an offer.
        self._holdback.purge(old)
        self._holdback.release()

    def _produce_unless_closed(self, entry: InFlight) -> None:
        if self._closed:
            raise DeliveryGivenUp("the publisher was closed before this record was sent")
        self._produce(entry)

    def _recreate_topic(self, topic: str) -> None:
        """Create a topic again and have librdkafka look for it: by itself it does so after minutes."""
        try:
            self._restore(topic)
            self._producer.list_topics(topic, timeout=properties.REQUEST_TIMEOUT_SECONDS)
        except (MessagingException, KafkaException) as error:
            LOG.debug("Recreating topic %s: %s", topic, error)

    def _report(self, entry: InFlight, error: KafkaError | None, message: Any) -> None:
        self._got_report = True
        if error is not None:
            if self._closed or not self._holdback.take_back(error, entry):
                self._fail(entry, errors.for_record(translate(error, f"topic {entry.topic}")))
            return
        self._state.down = None
        offset = message.offset()
        if offset is None and self._acknowledged:
            self._send_again(entry)
        elif (on_settled := entry.on_settled) is not None:
            partition = Partition(message.topic(), message.partition())
            receipt = Receipt(partition, UNKNOWN_OFFSET if offset is None else offset)
            callbacks.call(LOG, ("a record of topic", entry.topic), on_settled, receipt)

    def _send_again(self, entry: InFlight) -> None:
        """Send again what librdkafka reports as written but without an offset (KAFKA-15591)."""
        try:
            self._produce(entry)
        except MessagingException as error:
            self._fail(entry, error)

    def _fail(self, entry: InFlight, error: MessagingException) -> None:
        about = ("a record of topic", entry.topic)
        if entry.on_settled:
            callbacks.call(LOG, about, entry.on_settled, error)
        else:
            callbacks.call(LOG, about, self._on_failure, Record(*entry[2:6]), error)
