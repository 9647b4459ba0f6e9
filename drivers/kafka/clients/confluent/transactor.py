"""Transactions with confluent-kafka."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from notifier_kafka.contract.driver import Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException

from ..protocol import AssignedRecord
from .connection import ConnectionState, attempt, create, translate


class Transactor:
    """One transactional producer."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._state = ConnectionState(config)
        self._producer = create(confluent_kafka.Producer, config, self._state)
        self._initialized = False

    def begin(self, deadline: float) -> None:
        if not self._initialized:
            self._call(self._producer.init_transactions, deadline)
            self._initialized = True
        attempt("transaction", self._producer.begin_transaction)

    def send(self, records: Sequence[Record], deadline: float) -> list[Receipt | MessagingException | None]:
        outcomes: list[Receipt | MessagingException | None] = [None] * len(records)
        for number, record in enumerate(records):
            self._produce(number, record, outcomes, deadline)
        try:
            self._producer.flush(max(0.0, deadline - time.monotonic()))
        except (KafkaException, SystemError) as error:
            # Fatal: another producer has its id, for example. librdkafka may raise it within a callback.
            raise DeliveryFailed(f"transaction aborted: {error.__cause__ or error}") from error
        return outcomes

    def commit(self, deadline: float) -> None:
        self._call(self._producer.commit_transaction, deadline)

    def abort(self, deadline: float) -> None:
        self._call(self._producer.abort_transaction, deadline)

    def close(self) -> None:
        self._producer.purge()
        with contextlib.suppress(KafkaException):  # after a fatal error
            self._producer.flush(0)

    def _produce(
        self,
        number: int,
        record: Record,
        outcomes: list[Receipt | MessagingException | None],
        deadline: float,
    ) -> None:
        def report(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                outcomes[number] = translate(error, f"topic {record.topic}")
            else:
                outcomes[number] = Receipt(Partition(message.topic(), message.partition()), message.offset())

        topic, value, key, headers = record
        partition = record.number if isinstance(record, AssignedRecord) else -1
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=report, headers=list(headers)
                )
            except BufferError:
                if time.monotonic() > deadline:
                    raise DeliveryFailed("no room for the records of the transaction") from None
                self._producer.poll(0.05)
            except KafkaException as error:
                raise translate(error.args[0], f"topic {topic}") from None
            else:
                return

    def _call(self, call: Any, deadline: float) -> None:
        """Call with the time that is left; retry where librdkafka says that the error is retriable."""
        while True:
            try:
                call(max(0.1, deadline - time.monotonic()))
            except KafkaException as raised:
                error = raised.args[0]
                if not error.retriable() or time.monotonic() > deadline:
                    raise self._state.reason() or translate(error, "transaction") from None
            else:
                return
