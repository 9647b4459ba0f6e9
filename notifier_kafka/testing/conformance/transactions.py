# ruff: noqa: S101
"""Clause 10: the records of a transaction become visible together, or not at all."""

import signal
from typing import Any

import pytest

from notifier_kafka.contract.driver import Receipt
from notifier_kafka.errors import DeliveryFailed
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Rig, values


class Transactions(Base):
    """The promises of a transaction, for drivers that have transactions."""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if not cls.transactions:
            for name in vars(Transactions):
                if name.startswith("test_"):
                    setattr(cls, name, None)  # pytest does not collect None

    def test_clause_10_a_transaction_appears_whole_when_it_commits(self, rig: Rig) -> None:
        first, second = rig.topic(), rig.topic()
        records = [*child.numbered(first, 20), *child.numbered(second, 20)]
        transaction = rig.driver.transaction()
        for record in records:
            transaction.offer(record)
        receipts = transaction.commit(self.patience)
        found = {
            Receipt(delivery.partition, delivery.offset): delivery.record
            for topic in (first, second)
            for delivery in rig.contents(topic)
        }
        assert [found[receipt] for receipt in receipts] == records
        assert len(found) == len(records)

    def test_clause_10_nothing_is_seen_before_the_commit_or_after_an_abort(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 1))
        member = rig.join(topic, rig.name())
        aborted, open_still = rig.driver.transaction(), rig.driver.transaction()
        for record in child.numbered(topic, 30):
            aborted.offer(record)
            open_still.offer(record)
        aborted.abort()
        # Joining may take a while; before that, the member would see nothing anyway.
        rig.poll_for(1, member)
        rig.poll_for_more(member)
        assert len(rig.contents(topic)) == 1
        assert len(member.deliveries) == 1
        open_still.abort()

    def test_clause_10_a_transaction_is_aborted_when_its_process_dies(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 1))
        sender = rig.child("begin", topic, 50)
        assert "begun 50" in rig.wait_for_output(sender, "begun", self.takeover)
        sender.send_signal(signal.SIGKILL)
        rig.publish(child.numbered(topic, 1))
        # A log may block readers until it notices.
        rig.wait_until(lambda: len(rig.contents(topic)) == 2, "the record behind the dead transaction")

    def test_clause_10_an_ended_transaction_takes_nothing_more(self, rig: Rig) -> None:
        topic = rig.topic()
        committed, aborted = rig.driver.transaction(), rig.driver.transaction()
        (record,) = child.numbered(topic, 1)
        committed.offer(record)
        committed.commit(self.patience)
        committed.abort()
        aborted.abort()
        for ended in (committed, aborted):
            with pytest.raises(DeliveryFailed):
                ended.offer(record)
            with pytest.raises(DeliveryFailed):
                ended.commit(self.patience)
        assert values(rig.contents(topic)) == [record.value]

    def test_clause_10_an_empty_transaction_commits_to_nothing(self, rig: Rig) -> None:
        assert rig.driver.transaction().commit(self.patience) == []

    def test_clause_10_records_of_a_key_keep_the_order_offered(self, rig: Rig) -> None:
        topic = rig.topic()
        records = child.numbered(topic, 400)
        for half in (records[:200], records[200:]):
            transaction = rig.driver.transaction()
            for record in half:
                transaction.offer(record)
            transaction.commit(self.patience)
        deliveries = rig.contents(topic)
        for key in {record.key for record in records}:
            found = [d.record.value for d in deliveries if d.record.key == key]
            assert found == [record.value for record in records if record.key == key]
