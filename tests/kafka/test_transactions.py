"""All or nothing."""

import pathlib
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from notifier_kafka.contract.driver import Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, TransportUnavailable
from notifier_kafka_drivers.kafka.clients.protocol import Transactor
from notifier_kafka_drivers.kafka.local.cluster import Cluster
from notifier_kafka_drivers.kafka.transaction import Transactors
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until


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


def test_only_who_reads_what_is_uncommitted_sees_an_aborted_one(connect: Connect, topic: str) -> None:
    driver = connect(batch_size=16384)
    driver.admin().create_topic(topic, 1, {"max.message.bytes": "20000"})
    refused = driver.transaction()
    refused.offer(Record(topic, b"aborted"))
    refused.offer(Record(topic, bytes(range(256)) * 120))
    with pytest.raises(DeliveryFailed):
        refused.commit(30)
    publish(driver, Record(topic, b"after"))
    for level, seen in (("read_committed", [b"after"]), ("read_uncommitted", [b"aborted", b"after"])):
        member = connect(isolation_level=level).subscribe([topic], f"{topic}-{level}", "earliest")
        assert [delivery.record.value for delivery in gather(member, len(seen))] == seen


@pytest.mark.long_with("kafka-python")
def test_without_brokers_a_commit_ends_in_time(connect_to: Connect) -> None:
    transaction = connect_to("kafka://127.0.0.1:1").transaction()
    transaction.offer(Record("t", b"1"))
    with pytest.raises(DeliveryFailed, match=r"127\.0\.0\.1:1.*[Cc]onnection refused"):
        transaction.commit(5)


class HungBeforeCommit:
    """A transactor whose broker hangs as soon as it has the records."""

    def __init__(self, transactor: Transactor, cluster: Cluster) -> None:
        self._transactor = transactor
        self._cluster = cluster
        self.begin, self.commit = transactor.begin, transactor.commit
        self.abort, self.close = transactor.abort, transactor.close

    def send(self, records: Sequence[Record], deadline: float) -> list[Receipt | MessagingException | None]:
        outcomes: list[Receipt | MessagingException | None] = self._transactor.send(records, deadline)
        hang(self._cluster)
        return outcomes


def hang(cluster: Cluster) -> None:
    """Stop a broker; its threads are not all held when the signal was sent."""
    cluster.kill_node(1, signal.SIGSTOP)
    (node,) = cluster.status()
    state = pathlib.Path(f"/proc/{node['pid']}/stat")
    until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "the broker to be held")


@pytest.mark.long
def test_a_commit_that_is_not_answered_says_that_it_may_be_either(
    fragile: Cluster, connect_to: Connect, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = connect_to(fragile.url)
    driver.admin().create_topic(topic, 1)
    with monkeypatch.context() as hung:
        make = driver._transactor
        hung.setattr(driver, "_transactors", Transactors(lambda name: HungBeforeCommit(make(name), fragile)))
        transaction = driver.transaction()
    records = [b"%d" % n for n in range(5)]
    for value in records:
        transaction.offer(Record(topic, value))
    try:
        with pytest.raises(DeliveryFailed) as caught:
            transaction.commit(8)
    finally:
        fragile.kill_node(1, signal.SIGCONT)
    said = str(caught.value)
    assert "no answer to the commit within 8 s" in said
    assert "may be visible or become so, or nothing" in said
    assert "aborted" not in said

    def all_or_nothing() -> bool:
        try:
            return contents(driver, topic) in ([], records)
        except TransportUnavailable:
            return False  # the broker has been away

    until(all_or_nothing, "all or nothing")
    again = driver.transaction()
    again.offer(Record(topic, b"after"))
    assert len(again.commit(30)) == 1


def test_a_name_is_of_the_latest_who_asks(connect: Connect, topic: str) -> None:
    former, latter = connect(), connect()
    late = former.transaction(topic)
    late.offer(Record(topic, b"late"))
    for value in (b"1", b"2"):
        one = latter.transaction(topic)
        one.offer(Record(topic, value, b"k"))
        one.commit(30)
    with pytest.raises(DeliveryFailed):
        late.commit(30)
    assert contents(latter, topic) == [b"1", b"2"]
