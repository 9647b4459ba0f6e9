"""All or nothing."""

from typing import Any

import pytest
from kafka_rig import Connect

from notifier_kafka.driver import Record
from notifier_kafka.errors import DeliveryFailed


def contents(driver: Any, *topics: str) -> list[bytes]:
    return [d.record.value for span in driver.spans(topics) for d in driver.read(span)]


def test_what_is_committed_is_read_where_the_receipts_say(connect: Connect, topic: str) -> None:
    driver = connect()
    other = f"{topic}-2"
    for batch in range(2):
        transaction = driver.transaction()
        records = [Record(name, b"%d" % n, b"k") for n in range(5) for name in (topic, other)]
        for record in records:
            transaction.offer(record)
        receipts = transaction.commit(30)
        there = {
            (d.partition, d.offset): d.record for s in driver.spans([topic, other]) for d in driver.read(s)
        }
        assert [there[receipt] for receipt in receipts] == records
        assert len(there) == 10 * (batch + 1)


def test_what_is_refused_takes_the_whole_transaction_with_it(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1, {"max.message.bytes": "20000"})
    transaction = driver.transaction()
    transaction.offer(Record(topic, b"small"))
    transaction.offer(Record(topic, bytes(range(256)) * 120))
    with pytest.raises(DeliveryFailed, match=r"max\.message\.bytes"):
        transaction.commit(30)
    assert contents(driver, topic) == []
    again = driver.transaction()
    again.offer(Record(topic, b"after"))
    again.commit(30)
    assert contents(driver, topic) == [b"after"]


def test_a_span_ends_over_what_was_aborted(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1, {"max.message.bytes": "20000"})
    first = driver.transaction()
    first.offer(Record(topic, b"first"))
    first.commit(30)
    refused = driver.transaction()
    refused.offer(Record(topic, b"x", b"k"))
    refused.offer(Record(topic, bytes(range(256)) * 120))
    with pytest.raises(DeliveryFailed):
        refused.commit(30)
    (span,) = driver.spans([topic])
    assert span.stop > 1
    assert [d.record.value for d in driver.read(span)] == [b"first"]


def test_without_brokers_a_commit_ends_in_time(connect_to: Connect) -> None:
    transaction = connect_to("kafka://127.0.0.1:1").transaction()
    transaction.offer(Record("t", b"1"))
    with pytest.raises(DeliveryFailed, match=r"127\.0\.0\.1:1.*[Cc]onnection refused"):
        transaction.commit(5)
