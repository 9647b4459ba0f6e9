"""Publishing with kafka-python."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from kafka import errors as kafka_errors

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.contract.outbox import Outbox
from notifier_kafka.errors import DeliveryFailed, DeliveryGivenUp, MessagingException

from ... import errors
from .. import protocol
from .connection import CLOSE_TIMEOUT_SECONDS, NO_VALUE, connect_producer, discard
from .errors import translate

LOG = logging.getLogger(__name__)

CLOSE_CHECK_SECONDS = 0.2
CONNECT_PAUSE_SECONDS = 1.0
SILENCE_SECONDS = 5.0  # without an answer, after which we look for the reason and log it
WITHOUT_IDEMPOTENCE = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}


class BatchPublisher:
    """Delivers an outbox's batches. It and its producers are used on the outbox's thread only.

    A whole batch is handed over, then its results are awaited. The producer keeps the order within a
    partition when it retries, so a record that it gives up has failed for good. But a record that a
    broker refuses ends an idempotent producer, and everything that it still had to send fails: each
    of these is then sent alone, by a producer without idempotence, which survives refusals.
    """

    outbox: Outbox

    def __init__(self, config: protocol.Properties, restore: protocol.Restore, retry: int) -> None:
        """``retry`` is that of ``Limits``; -1 is for ever."""
        self._config = config
        self._restore = restore
        self._retry = retry
        self._producer: Any = None
        self._waiting = False

    def deliver(self, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        if self._producer is None:
            self._producer = self._connect(self._config)
        outcomes = self._send_all(self._producer, records)
        refused = [number for number, outcome in enumerate(outcomes) if _is_refusal(outcome)]
        if refused:
            discard(self._producer)
            self._producer = None
            again = self._send_one_by_one([records[number] for number in refused])
            for number, outcome in zip(refused, again, strict=True):
                outcomes[number] = outcome
        return [_final(outcome) for outcome in outcomes]

    def _send_one_by_one(self, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        """Send each by itself. Raises nothing: the outbox would send again what has its receipt already."""
        tries = 0
        while True:
            try:
                careful = self._connect({**self._config, **WITHOUT_IDEMPOTENCE})
                break
            except MessagingException as error:
                if not error.retriable or tries == self._retry or self.outbox.closed:
                    return [error] * len(records)
                self._log_once(error)
            tries += 1
            time.sleep(CONNECT_PAUSE_SECONDS)
        outcomes = [self._send_all(careful, [record])[0] for record in records]
        discard(careful)
        return outcomes

    def end(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _connect(self, config: protocol.Properties) -> Any:
        return connect_producer(config)

    def _send_all(self, producer: Any, records: Sequence[Record]) -> list[Receipt | MessagingException]:
        sent = [self._send(producer, record) for record in records]
        return [self._outcome(future, record) for future, record in zip(sent, records, strict=True)]

    def _send(self, producer: Any, record: Record) -> Any:
        """Return a future, or the error. Waits while metadata is missing."""
        topic, value, key, headers = record
        given = NO_VALUE if value is None else value
        partition = record.number if isinstance(record, protocol.AssignedRecord) else None
        while True:
            try:
                return producer.send(topic, given, key, headers=list(headers), partition=partition)
            except kafka_errors.KafkaTimeoutError as error:
                # No later record may overtake this one, so wait here.
                self._find_reason(topic)
                if self._retry >= 0 or self.outbox.closed:
                    return translate(error, f"topic {topic}")
            except (kafka_errors.KafkaError, TypeError, ValueError) as error:
                return translate(error, f"topic {topic}")

    def _outcome(self, future: Any, record: Record) -> Receipt | MessagingException:
        if isinstance(future, MessagingException):
            return future
        since = checked = time.monotonic()
        while not future.is_done:
            try:
                future.get(CLOSE_CHECK_SECONDS)
            except kafka_errors.KafkaError:
                now = time.monotonic()
                if self.outbox.closed and now - since > CLOSE_TIMEOUT_SECONDS:
                    return DeliveryGivenUp("the publisher was closed before this record was confirmed")
                if not future.is_done and now - checked > SILENCE_SECONDS:
                    self._find_reason(record.topic)
                    checked = time.monotonic()
        if future.failed():
            return translate(future.exception, f"topic {record.topic}")
        if self._waiting:
            self._waiting = False
            LOG.warning("Publishing goes on")
        sent = future.value
        return Receipt(Partition(sent.topic, sent.partition), sent.offset)

    def _find_reason(self, topic: str) -> None:
        """Find out why there is no answer; a topic that was deleted is created again."""
        if self.outbox.closed:
            return
        try:
            self._restore(topic)
        except MessagingException as error:
            self._log_once(error)

    def _log_once(self, error: MessagingException) -> None:
        if not self._waiting:
            self._waiting = True
            LOG.warning("Publishing waits: %s", error)


def _is_refusal(outcome: Receipt | MessagingException) -> bool:
    return isinstance(outcome, errors.AccessDenied) or (
        isinstance(outcome, MessagingException) and not outcome.retriable
    )


def _final(outcome: Receipt | MessagingException) -> Receipt | MessagingException:
    if not isinstance(outcome, MessagingException):
        return outcome
    failure = errors.for_record(outcome)
    # Also what timed out: a retry from here would put it behind later records.
    return failure if isinstance(failure, DeliveryFailed) else DeliveryGivenUp(str(failure))
