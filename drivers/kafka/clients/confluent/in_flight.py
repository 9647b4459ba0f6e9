"""confluent-kafka behind the seam: a record on its way through a publisher."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from notifier_kafka.contract.driver import Headers, OnSettled


class Entry(NamedTuple):
    """A record with its number in the order of offers, and who is told of it.

    It is what librdkafka calls with a report. One object for all of it: a hundred thousand may be under
    way, and each one that Python's collector has to look at again and again counts.
    """

    report: "Callable[[Entry, KafkaError | None, Any], None]"
    number: int
    topic: str
    value: bytes | None
    key: bytes | None
    headers: Headers
    partition: int
    on_settled: OnSettled | None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        self.report(self, error, message)


# A named tuple's own constructor is Python code; this makes the same without it.
make_entry: partial[Any] = partial(tuple.__new__, Entry)


def size_of(entry: Entry) -> int:
    """What the bounds of an outbox count of a record, as librdkafka does."""
    return len(entry.value or b"") + len(entry.key or b"")
