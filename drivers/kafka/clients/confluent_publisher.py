"""confluent-kafka behind the seam: publishing."""

import logging
import threading
from collections.abc import Callable
from types import MethodType
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from notifier_kafka.driver import OnFailure, OnSettled, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull

from .. import errors, properties
from . import client
from .confluent_link import Link, made, translate

LOG = logging.getLogger(__name__)

SERVE = 0.2  # seconds between looks whether a publisher was closed
UNPLACED = -1  # librdkafka chooses
GRACE = 2.0  # seconds that close gives what is on the wire
GONE = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 - public names


class Publisher:
    """librdkafka takes records without blocking; a thread serves its reports."""

    def __init__(self, config: dict[str, Any], on_failure: OnFailure, restore: client.Restore) -> None:
        self._link = Link(config)
        self._closed = False
        self._restore = restore
        self._gone: set[str] = set()
        self._wanted = False
        self._config = config
        self._producer = made(confluent_kafka.Producer, config, self._link)
        self._report = _reporter(on_failure, self._link)
        threading.Thread(target=self._serve, name="notifier-kafka-reports", daemon=True).start()

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        topic, value, key, headers = record
        if self._closed:
            raise DeliveryFailed("the publisher is closed: publish before closing it")
        # A report brings no headers back, and a failed record has to be whole: so each goes with
        # a callable that holds it, and a bound method is the cheapest one to make.
        report = MethodType(self._report, record) if on_settled is None else MethodType(_settle, on_settled)
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
        return int(self._producer.flush(timeout))

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
            try:
                self._producer.poll(SERVE)
            except KafkaException as error:
                self._link.on_error(error.args[0])
            while self._gone:
                self._find(self._gone.pop())
            if self._wanted and self._link.fatal:
                self._renew()
            down = self._link.down
            if (down is not None) != told:
                told = not told
                LOG.warning(
                    "Publishing waits: %s" if told else "Publishing goes on%s", self._link.reason() or ""
                )

    def _renew(self) -> None:
        """Take a new producer: an idempotent one that lost its thread has failed all, and will."""
        old, self._wanted, self._link.fatal = self._producer, False, False
        self._producer = made(confluent_kafka.Producer, self._config, self._link)
        old.purge()
        old.flush(GRACE)

    def _find(self, topic: str) -> None:
        """Make a topic again and let librdkafka see it, which by itself looks after minutes."""
        try:
            self._restore(topic)
            self._producer.list_topics(topic, timeout=properties.REQUEST_TIMEOUT)
        except (MessagingException, KafkaException) as error:
            LOG.debug("Looking for topic %s: %s", topic, error)


def _reporter(on_failure: OnFailure, link: Link) -> Callable[[Record, KafkaError | None, Any], None]:
    def report(record: Record, error: KafkaError | None, _message: Any) -> None:
        if error is None:
            link.down = None
            return
        try:
            on_failure(record, errors.for_record(translate(error, f"topic {record.topic}")))
        except Exception:
            # The user's code on our thread: its error must not end publishing.
            LOG.exception("A callback for a failed record of topic %s raised", record.topic)

    return report


def _settle(on_settled: OnSettled, error: KafkaError | None, message: Any) -> None:
    outcome: Receipt | MessagingException
    if error is None:
        outcome = Receipt(Partition(message.topic(), message.partition()), message.offset())
    else:
        outcome = errors.for_record(translate(error, f"topic {message.topic()}"))
    try:
        on_settled(outcome)
    except Exception:
        LOG.exception("A callback for a settled record of topic %s raised", message.topic())
