# ruff: noqa: S101
"""Clauses 1 and 2: no record is lost without an error, and the order of a key is kept."""

import signal
import threading
from collections import Counter, defaultdict

import pytest

from notifier_kafka.contract.driver import Delivery, Limits, Partition, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Rig, positions_after, values


class SettledRecords:
    """Collects receipts and errors of records, from any thread."""

    def __init__(self) -> None:
        self.receipts: list[tuple[Record, Receipt]] = []
        self.failures: list[tuple[Record, MessagingException]] = []
        self._lock = threading.Lock()

    def add(self, record: Record, fate: Receipt | MessagingException) -> None:
        with self._lock:
            if isinstance(fate, Receipt):
                self.receipts.append((record, fate))
            else:
                self.failures.append((record, fate))

    def count(self) -> int:
        return len(self.receipts) + len(self.failures)


class Publishing(Base):
    """The promises of a publisher."""

    def test_clause_1_flushed_records_are_there_for_another_driver(self, rig: Rig) -> None:
        topic = rig.topic()
        records = child.numbered(topic, 500)
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits())
        rig.offer(publisher, records)
        assert publisher.flush(self.patience) == 0
        assert settled.failures == []
        assert values(rig.contents(topic)) == sorted(r.value or b"" for r in records)

    def test_clause_1_flushed_records_survive_the_death_of_their_process(self, rig: Rig) -> None:
        topic = rig.topic()
        sender = rig.child("publish", topic, 300)
        assert "flushed 0" in rig.wait_for_output(sender, "flushed", self.takeover)
        sender.send_signal(signal.SIGKILL)
        assert values(rig.contents(topic)) == sorted(r.value or b"" for r in child.numbered(topic, 300))

    def test_clause_1_every_record_is_settled_once_with_its_offset(self, rig: Rig) -> None:
        topic = rig.topic()
        records = child.numbered(topic, 200)
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits())
        for record in records:
            publisher.offer(record, lambda fate, record=record: settled.add(record, fate))  # type: ignore[misc]
        assert publisher.flush(self.patience) == 0
        rig.wait_until(lambda: settled.count() >= len(records), "every record to be settled")
        assert settled.failures == []
        assert Counter(record.value for record, _ in settled.receipts) == Counter(r.value for r in records)
        there = {(d.partition, d.offset): d.record.value for d in rig.contents(topic)}
        assert {tuple(place): record.value for record, place in settled.receipts} == there

    def test_clause_1_close_reports_what_it_gives_up(self, rig: Rig) -> None:
        topic = rig.topic()
        records = child.numbered(topic, 2000)
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits())
        rig.offer(publisher, records)
        publisher.close()
        given_up = [record.value for record, _ in settled.failures]
        arrived = [delivery.record.value for delivery in rig.contents(topic)]
        assert {*given_up, *arrived} == {record.value for record in records}
        assert len(given_up) == len(set(given_up))

    def test_clause_1_a_full_outbox_refuses_and_keeps_what_it_accepted(self, rig: Rig) -> None:
        topic = rig.topic()
        accepted: list[Record] = []
        refused: list[Record] = []
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits(records=20))
        for record in child.numbered(topic, 3000):
            try:
                publisher.offer(record)
            except OutboxFull:
                refused.append(record)
            else:
                accepted.append(record)
        assert publisher.flush(self.patience) == 0
        assert settled.failures == []
        assert len(accepted) >= 20
        assert values(rig.contents(topic)) == sorted(record.value or b"" for record in accepted)

    def test_clause_1_an_oversized_record_is_taken_or_refused(self, rig: Rig) -> None:
        topic = rig.topic()
        settled = SettledRecords()
        publisher = rig.driver.publisher(settled.add, Limits(bytes=10_000, retry=0))
        record = Record(topic, b"x" * 100_000)
        try:
            publisher.offer(record)
        except DeliveryFailed as refusal:
            settled.add(record, refusal)
        assert publisher.flush(self.patience) == 0
        assert len(settled.failures) + len(rig.contents(topic)) == 1

    def test_clause_2_records_of_a_key_are_read_in_the_order_offered(self, rig: Rig) -> None:
        topic = rig.topic()
        publisher = rig.driver.publisher(SettledRecords().add, Limits())
        rig.offer(publisher, _interleaved(topic))
        assert publisher.flush(self.patience) == 0
        _assert_ordered(rig.contents(topic))

    def test_clause_2_records_of_a_key_are_polled_in_the_order_offered(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(_interleaved(topic))
        member = rig.join(topic, rig.name())
        rig.poll_for(800, member)
        _assert_ordered(member.deliveries)

    def test_clause_2_a_key_has_one_partition_for_all_publishers(self, rig: Rig) -> None:
        topic = rig.topic()
        for batch in range(3):
            rig.publish(Record(topic, b"%d" % batch, b"key-%d" % n) for n in range(20))
        found: dict[bytes | None, list[Delivery]] = defaultdict(list)
        for delivery in rig.contents(topic):
            found[delivery.record.key].append(delivery)
        for deliveries in found.values():
            assert len({delivery.partition for delivery in deliveries}) == 1
            assert [delivery.record.value for delivery in deliveries] == [b"0", b"1", b"2"]

    def test_keys_spread_over_the_partitions(self, rig: Rig) -> None:
        topic = rig.topic(partitions=3)
        rig.publish(child.numbered(topic, 64))
        assert {partition.number for partition in positions_after(rig.contents(topic))} == {0, 1, 2}

    def test_records_without_a_key_all_arrive(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(Record(topic, b"%d" % n) for n in range(100))
        assert len(set(values(rig.contents(topic)))) == 100

    def test_flush_of_nothing_returns_at_once(self, rig: Rig) -> None:
        assert rig.driver.publisher(SettledRecords().add).flush(self.patience) == 0

    def test_publisher_close_may_come_twice(self, rig: Rig) -> None:
        publisher = rig.driver.publisher(SettledRecords().add, Limits())
        publisher.close()
        publisher.close()

    def test_clause_1_offer_after_close_is_refused(self, rig: Rig) -> None:
        topic = rig.topic()
        publisher = rig.driver.publisher(SettledRecords().add, Limits())
        publisher.close()
        with pytest.raises(DeliveryFailed):
            publisher.offer(Record(topic, b"late"))
        assert rig.contents(topic) == []


def _interleaved(topic: str) -> list[Record]:
    return [Record(topic, b"%d" % n, b"key-%d" % k) for n in range(200) for k in range(4)]


def _assert_ordered(deliveries: list[Delivery]) -> None:
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    offsets: dict[Partition, list[int]] = defaultdict(list)
    for delivery in deliveries:
        by_key[delivery.record.key].append(int(delivery.record.value or b"-1"))
        offsets[delivery.partition].append(delivery.offset)
    assert len(by_key) == 4
    for numbers in by_key.values():
        assert numbers == list(range(200))
    for numbers in offsets.values():
        assert numbers == sorted(set(numbers))
