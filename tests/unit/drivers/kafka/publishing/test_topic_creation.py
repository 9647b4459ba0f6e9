"""What waits for its topic, when something goes wrong that nobody thought of."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from notifier_kafka.contract.driver import Limits, OnFailure, Partition, Receipt, Record
from notifier_kafka.contract.outbox import Outbox
from notifier_kafka.errors import DeliveryFailed
from notifier_kafka_drivers.kafka.publishing import partitioning
from notifier_kafka_drivers.kafka.publishing.topic_creation import PublisherAwaitingTopics

PATIENCE = 20.0
Gate = Callable[..., PublisherAwaitingTopics]


def deliver(records: Sequence[Record]) -> list[Receipt]:
    return [Receipt(Partition(record.topic, 0), 0) for record in records]


def make(report: OnFailure, _restore: Callable[[str], None]) -> Outbox:
    return Outbox(deliver, report, Limits())


@pytest.fixture
def gate() -> Iterator[Gate]:
    made: list[PublisherAwaitingTopics] = []

    def put(
        ensure: partitioning.Ensure, place: partitioning.AssignPartition = partitioning.leave_to_client
    ) -> PublisherAwaitingTopics:
        topics = partitioning.Topics(ensure, place)
        made.append(PublisherAwaitingTopics(make, topics, lambda *_: None, Limits(), (1_000, PATIENCE)))
        return made[-1]

    yield put
    for each in made:
        each.close()


def test_it_costs_its_records_only_and_is_seen(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    errors, settled = [RuntimeError("no more threads")], list[Any]()

    def ensure(_topic: str) -> int:
        if errors:
            raise errors.pop()
        return 1

    publisher = gate(ensure)
    for value in (b"1", b"2"):
        publisher.offer(Record("t", value), settled.append)
        assert publisher.flush(PATIENCE) == 0
    assert [type(each) for each in settled] == [DeliveryFailed, Receipt]
    assert "the driver failed: RuntimeError: no more threads" in str(settled[0])
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_when_the_thread_is_gone_the_next_record_has_another(gate: Gate) -> None:
    errors, settled = [RuntimeError("in the thread")], list[Any]()

    def place(record: Record, _count: int) -> Record:
        if errors:
            raise errors.pop()
        return record

    publisher = gate(lambda _topic: 1, place)
    publisher.offer(Record("t", b"1"), settled.append)
    deadline = time.monotonic() + PATIENCE
    while publisher._creator is not None:
        assert time.monotonic() < deadline, "it does not know that its thread is gone"
        time.sleep(0.01)
    publisher.offer(Record("t", b"2"), settled.append)
    assert publisher.flush(PATIENCE) == 0
    assert [type(each) for each in settled] == [Receipt, Receipt]
