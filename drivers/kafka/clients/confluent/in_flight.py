"""A record in flight, in a publisher of confluent-kafka."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from notifier_kafka.contract.driver import Headers, OnSettled, make_record
from notifier_kafka.contract.record_size import size_in_bytes


class InFlight(NamedTuple):
    """A record, its number in the order of offers, and what to call with its outcome.

    librdkafka calls this object with its report. It is one object on purpose: a hundred thousand may be in
    flight, and Python's garbage collector looks at each object again and again.
    """

    report: "Callable[[InFlight, KafkaError | None, Any], None]"
    number: int
    topic: str
    value: bytes | None
    key: bytes | None
    headers: Headers
    partition: int
    on_settled: OnSettled | None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        self.report(self, error, message)


# The constructor of a named tuple is Python code; this makes the same without it.
make_in_flight: partial[Any] = partial(tuple.__new__, InFlight)


def size_of(entry: InFlight) -> int:
    """Count the bytes of its record, as the bounds of an outbox do."""
    return size_in_bytes(make_record(entry[2:6]))
