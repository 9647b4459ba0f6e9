"""Transactions with kafka-python."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from kafka import errors as kafka_errors

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.errors import MessagingException, TransportUnavailable

from ..protocol import AssignedRecord
from .connection import NO_VALUE, connect_producer, discard
from .errors import attempt, translate


class Transactor:
    """One transactional producer."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self._producer: Any = None

    def begin(self, deadline: float) -> None:
        if self._producer is None:
            self._producer = connect_producer(self._given)
            _within(deadline, self._producer.init_transactions)
        attempt("transaction", self._producer.begin_transaction)

    def send(self, records: Sequence[Record], deadline: float) -> list[Receipt | MessagingException | None]:
        sent = [self._send(record) for record in records]
        return [_outcome(future, deadline) for future in sent]

    def commit(self, deadline: float) -> None:
        _within(deadline, self._producer.commit_transaction)

    def abort(self, deadline: float) -> None:
        _within(deadline, self._producer.abort_transaction)

    def close(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _send(self, record: Record) -> Any:
        topic, value, key, headers = record
        given = NO_VALUE if value is None else value
        partition = record.number if isinstance(record, AssignedRecord) else None
        return attempt(
            f"topic {topic}",
            lambda: self._producer.send(topic, given, key, headers=list(headers), partition=partition),
        )


def _outcome(future: Any, deadline: float) -> Receipt | MessagingException | None:
    try:
        found = future.get(max(0.0, deadline - time.monotonic()))
    except kafka_errors.KafkaError as error:
        return translate(error, "transaction") if future.is_done else None
    return Receipt(Partition(found.topic, found.partition), found.offset)


def _within(deadline: float, call: Callable[[], Any]) -> None:
    """Call what has no timeout of its own. A call that takes too long stays behind in its thread."""
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            call()
        except (kafka_errors.KafkaError, RuntimeError) as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=run, name="notifier-kafka-transaction", daemon=True).start()
    try:
        outcome.result(max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise TransportUnavailable("transaction: no answer from the brokers in time") from None
    except (kafka_errors.KafkaError, RuntimeError) as error:
        raise translate(error, "transaction") from None
