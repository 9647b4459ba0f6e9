"""kafka-python behind the seam: publishing."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.contract.outbox import Outbox
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException

from ... import errors
from .. import protocol
from .connection import CONNECT_MS, GRACE, NOTHING, Tombstones, connect, discard
from .errors import translate

LOG = logging.getLogger(__name__)

LOOK = 0.2  # seconds between looks whether the publisher was closed
PAUSE = 1.0  # seconds between tries to connect
SILENCE = 5.0  # seconds without an answer after which we say so
CAREFUL = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}


class Sender:
    """Delivers an outbox's batches. Lives on the outbox's thread, like its producers.

    A batch is handed over whole and then waited for. The producer keeps order within a
    partition while it tries again, so what it gives up has failed for good. But one record
    that a broker refuses is the end of an idempotent producer and of all that it had to
    send: then each of these is sent alone, by a producer that survives refusals.
    """

    outbox: Outbox

    def __init__(self, config: protocol.Properties, restore: protocol.Restore, retry: int) -> None:
        """``retry`` is that of ``Limits``, -1 for ever."""
        self._config = config
        self._restore = restore
        self._retry = retry
        self._producer: Any = None
        self._silent = False

    def deliver(self, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        if self._producer is None:
            self._producer = self._connect(self._config)
        outcomes = self._through(self._producer, records)
        refused = [number for number, outcome in enumerate(outcomes) if _is_refusal(outcome)]
        if refused:
            discard(self._producer)
            self._producer = None
            again = self._alone([records[number] for number in refused])
            for number, outcome in zip(refused, again, strict=True):
                outcomes[number] = outcome
        return [_final(outcome) for outcome in outcomes]

    def _alone(self, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        """Send each by itself. Raises nothing, or the outbox would send again what has its receipt."""
        tries = 0
        while True:
            try:
                careful = self._connect({**self._config, **CAREFUL})
                break
            except MessagingException as error:
                if not error.retriable or tries == self._retry or self.outbox.closed:
                    return [error] * len(records)
                self._say_why(error)
            tries += 1
            time.sleep(PAUSE)
        outcomes = [self._through(careful, [record])[0] for record in records]
        discard(careful)
        return outcomes

    def end(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _connect(self, config: protocol.Properties) -> Any:
        return connect(KafkaProducer, config, max_block_ms=CONNECT_MS, value_serializer=Tombstones())

    def _through(self, producer: Any, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        sent = [self._send(producer, record) for record in records]
        return [self._outcome(future, record) for future, record in zip(sent, records, strict=True)]

    def _send(self, producer: Any, record: Record) -> Any:
        """Return a future, or the error that there is none for. Waits while metadata is missing."""
        topic, value, key, headers = record
        given = NOTHING if value is None else value
        place = record.number if isinstance(record, protocol.Placed) else None
        while True:
            try:
                return producer.send(topic, given, key, headers=list(headers), partition=place)
            except kafka_errors.KafkaTimeoutError as error:
                # Nothing may overtake it, so it is waited for here.
                self._silence(topic)
                if self._retry >= 0 or self.outbox.closed:
                    return translate(error, f"topic {topic}")
            except (kafka_errors.KafkaError, TypeError, ValueError) as error:
                return translate(error, f"topic {topic}")

    def _outcome(self, future: Any, record: Record) -> Receipt | MessagingException:
        if isinstance(future, MessagingException):
            return future
        since = looked = time.monotonic()
        while not future.is_done:
            try:
                future.get(LOOK)
            except kafka_errors.KafkaError:
                now = time.monotonic()
                if self.outbox.closed and now - since > GRACE:
                    return DeliveryGivenUp("the publisher was closed before this record was confirmed")
                if not future.is_done and now - looked > SILENCE:
                    self._silence(record.topic)
                    looked = time.monotonic()
        if future.failed():
            return translate(future.exception, f"topic {record.topic}")
        if self._silent:
            self._silent = False
            LOG.warning("Publishing goes on")
        sent = future.value
        return Receipt(Partition(sent.topic, sent.partition), sent.offset)

    def _silence(self, topic: str) -> None:
        """Find out why nothing is heard; a topic that was deleted is made again."""
        if self.outbox.closed:
            return
        try:
            self._restore(topic)
        except MessagingException as error:
            self._say_why(error)

    def _say_why(self, error: MessagingException) -> None:
        if not self._silent:
            self._silent = True
            LOG.warning("Publishing waits: %s", error)


def _is_refusal(outcome: Receipt | MessagingException) -> bool:
    return isinstance(outcome, errors.AccessDenied) or (
        isinstance(outcome, MessagingException) and not outcome.retriable
    )


def _final(outcome: Receipt | MessagingException) -> Receipt | MessagingException:
    if not isinstance(outcome, MessagingException):
        return outcome
    failure = errors.for_record(outcome)
    # Also what was given up for lack of time: from here it would come after what lay behind it.
    return failure if isinstance(failure, DeliveryFailed) else DeliveryGivenUp(str(failure))
