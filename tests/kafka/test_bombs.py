"""Small compressed batches that open to a lot, put on a topic by somebody who may write to it."""

import logging
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import LogUnusable
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until

BOMB = 60 * 1024 * 1024  # bytes, all of them zero
BOUND = 53_000_000  # instead of librdkafka's 100 MB, which no outbox holds


def plant(connect: Connect, topic: str, codec: str, size: int) -> None:
    driver = connect(client="confluent-kafka", compression=codec, max_request_size=size + 1000)
    for value in (b"before", bytes(size), b"after"):
        publish(driver, Record(topic, value))


@pytest.fixture
def alone(connect: Connect) -> Connect:
    """Topics of one partition."""
    return lambda **values: connect(topic_partitions=1, **values)


@pytest.mark.parametrize("client", ["kafka-python"])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_kafka_python_passes_over_it_and_says_so_once(
    alone: Connect, topic: str, codec: str, caplog: pytest.LogCaptureFixture
) -> None:
    plant(alone, topic, codec, BOMB)
    driver = alone()
    found = gather(driver.subscribe([topic], topic, "earliest"), 2)
    assert [(d.offset, d.record.value) for d in found] == [(0, b"before"), (2, b"after")]
    (said,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert said.startswith(f"Passed over {topic}[0] from 1 to 1: a compressed batch of ")
    assert said.endswith(" bytes opens to more than 52428800 (fetch.max.bytes)")
    read = [d.record.value for span in driver.spans([topic]) for d in driver.read(span)]
    assert read == [b"before", b"after"]


@pytest.mark.parametrize("client", ["kafka-python"])
def test_who_sends_large_records_may_read_them(alone: Connect, topic: str) -> None:
    plant(alone, topic, "gzip", BOMB)
    raised = alone(max_request_size=BOMB + 1000)
    assert len(gather(raised.subscribe([topic], topic, "earliest"), 3)) == 3
    told = alone(client_properties={"fetch.max.bytes": str(BOMB + 1000)})
    assert len(gather(told.subscribe([topic], f"{topic}-told", "earliest"), 3)) == 3


@pytest.mark.parametrize("client", ["confluent-kafka"])
def test_confluent_kafka_stops_before_a_zstd_bomb_and_says_where(alone: Connect, topic: str) -> None:
    plant(alone, topic, "zstd", BOMB)
    driver = alone(client_properties={"receive.message.max.bytes": str(BOUND)})
    member = driver.subscribe([topic], topic, "earliest")
    assert [d.record.value for d in gather(member, 1)] == [b"before"]
    complaints: list[str] = []

    def complains() -> bool:
        try:
            member.poll(1, 0.5)
        except LogUnusable as error:
            complaints.append(str(error))
        return bool(complaints)

    until(complains, "an error")
    assert complaints[0].startswith(f"{topic}[0]: Decompression (codec 0x4) of message at 1 of ")
    assert "groups reset" in complaints[0]
    member.close()
    # What the error advises.
    driver.admin().reset_group(topic, {span.partition: 2 for span in driver.spans([topic])})
    after: Any = gather(driver.subscribe([topic], topic, "earliest"), 1)
    assert [d.record.value for d in after] == [b"after"]
