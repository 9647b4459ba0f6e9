# ruff: noqa: S101
"""Clauses 3, 4 and 5: positions, and which member goes on from them."""

import signal

import pytest

from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import CommitRefused, MessagingException
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Member, Rig, offsets_of, positions_after, values


class Consuming(Base):
    """What a single member of a group sees."""

    def test_clause_3_no_offset_twice_while_the_partition_is_owned(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 200))
        member = rig.join(topic, rig.name())
        rig.wait_until(lambda: [*member.poll(7), len(member.deliveries) >= 200][-1], "all records")
        rig.publish(child.numbered(topic, 50, first=200))
        rig.poll_for(250, member)
        rig.poll_for_more(member)
        assert len(offsets_of(member.deliveries)) == len(set(offsets_of(member.deliveries))) == 250

    def test_clause_3_a_commit_causes_no_redelivery(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 100))
        member = rig.join(topic, rig.name())
        rig.poll_for(100, member)
        member.subscription.commit(positions_after(member.deliveries[:10]))
        rig.poll_for_more(member)
        member.subscription.commit(positions_after(member.deliveries))
        rig.poll_for_more(member)
        assert len(member.deliveries) == 100

    def test_clause_3_seek_back_yields_again_from_there(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 50))
        member = rig.join(topic, rig.name())
        rig.poll_for(50, member)
        member.subscription.commit({Partition(topic, 0): 40})
        member.subscription.seek({Partition(topic, 0): 20})
        rig.poll_for(80, member)
        rig.poll_for_more(member)
        assert [d.offset for d in member.deliveries[50:]] == list(range(20, 50))

    def test_clause_3_seek_forward_skips(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 50))
        member = rig.join(topic, rig.name())
        rig.wait_until(lambda: member.poll(limit=1), "a first delivery")
        member.subscription.seek({Partition(topic, 0): 45})
        rig.poll_for(6, member)
        rig.poll_for_more(member)
        assert [d.offset for d in member.deliveries[1:]] == list(range(45, 50))

    def test_seek_of_a_partition_not_owned_changes_nothing(self, rig: Rig) -> None:
        topic, other = rig.topic(), rig.topic()
        rig.publish(child.numbered(topic, 20))
        member = rig.join(topic, rig.name())
        rig.poll_for(20, member)
        member.subscription.seek({Partition(other, 0): 0})
        rig.poll_for_more(member)
        assert len(member.deliveries) == 20

    @pytest.mark.parametrize("offset", [-5, 2**45, 2**64])
    def test_seek_beyond_the_log_yields_no_record_of_another_partition(self, rig: Rig, offset: int) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 64))
        there = {(d.partition, d.offset): d.record for d in rig.contents(topic)}
        member = rig.join(topic, rig.name())
        rig.poll_for(64, member)
        try:
            member.subscription.seek({Partition(topic, 1): offset})
            rig.poll_for_more(member)
        except MessagingException:
            member.subscription.close()
        assert all(there[d.partition, d.offset] == d.record for d in member.deliveries)

    def test_clause_4_commit_covers_all_offsets_before(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 60))
        group = rig.name()
        self._commit_and_leave(rig, topic, group, 25)
        assert [d.offset for d in self._rest(rig, topic, group, 35).deliveries] == list(range(25, 60))

    def test_clause_4_commit_never_moves_back(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 60))
        group = rig.name()
        self._commit_and_leave(rig, topic, group, 50, 20)
        assert rig.admin().describe_group(group).positions[Partition(topic, 0)] == 50
        assert [d.offset for d in self._rest(rig, topic, group, 10).deliveries] == list(range(50, 60))

    def test_clause_4_commit_of_a_lost_partition_is_refused_and_changes_nothing(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 90))
        group = rig.name()
        first = rig.join(topic, group)
        rig.poll_for(90, first)
        second = rig.join(topic, group)
        rig.wait_until(lambda: [first.poll(), second.poll()][-1], "a partition for the second member")
        lost = {delivery.partition for delivery in second.deliveries}
        with pytest.raises(CommitRefused) as refusal:
            first.subscription.commit(positions_after(first.deliveries))
        assert lost <= refusal.value.partitions
        assert not any(rig.admin().describe_group(group).positions.values())
        kept = {
            p: n for p, n in positions_after(first.deliveries).items() if p not in refusal.value.partitions
        }
        first.subscription.commit(kept)
        positions = rig.admin().describe_group(group).positions
        assert {partition: n for partition, n in positions.items() if n} == kept

    def test_clause_4_commit_after_close_is_refused_and_changes_nothing(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(30, member)
        member.subscription.close()
        with pytest.raises(CommitRefused):
            member.subscription.commit(positions_after(member.deliveries))
        assert len(self._rest(rig, topic, group, 30).deliveries) == 30

    def test_clause_4_a_member_that_was_stopped_too_long_is_refused(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        holder = rig.child("hold", topic, group, 30)
        rig.wait_for_output(holder, "held", self.takeover)
        rig.suspend(holder)
        member = rig.join(topic, group)
        rig.poll_for(30, member, seconds=self.takeover)
        holder.send_signal(signal.SIGCONT)
        holder.resume()
        rig.wait_for_output(holder, "refused")
        assert not any(rig.admin().describe_group(group).positions.values())

    def test_clause_5_close_hands_over_what_was_not_committed(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 90))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(90, member)
        done = member.deliveries[:45]
        positions = positions_after(done)
        member.subscription.commit(positions)
        member.subscription.close()
        left = [d for d in member.deliveries if d.offset >= positions.get(d.partition, 0)]
        assert values(self._rest(rig, topic, group, len(left)).deliveries) == values(left)

    def test_clause_5_closing_the_driver_hands_over_what_was_not_committed(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        driver = rig.connect()
        member = Member(driver.subscribe([topic], group, "earliest"))
        rig.poll_for(30, member)
        driver.close()
        assert len(self._rest(rig, topic, group, 30).deliveries) == 30

    def test_clause_5_a_killed_member_s_records_go_to_another(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 60))
        group = rig.name()
        holder = rig.child("hold", topic, group, 60)
        rig.wait_for_output(holder, "held", self.takeover)
        holder.send_signal(signal.SIGKILL)
        member = rig.join(topic, group)
        rig.poll_for(60, member, seconds=self.takeover)
        assert values(member.deliveries) == sorted(r.value or b"" for r in child.numbered(topic, 60))

    def test_clause_5_a_closed_subscription_yields_nothing(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 10))
        member = rig.join(topic, rig.name())
        member.subscription.close()
        try:
            deliveries = list(member.subscription.poll(10, 0.1))
        except MessagingException:
            deliveries = []
        assert deliveries == []

    def _commit_and_leave(self, rig: Rig, topic: str, group: str, *offsets: int) -> None:
        member = rig.join(topic, group)
        rig.poll_for(60, member)
        for offset in offsets:
            member.subscription.commit({Partition(topic, 0): offset})
        member.subscription.close()

    def _rest(self, rig: Rig, topic: str, group: str, count: int) -> Member:
        """Return the next member of the group, when it has ``count`` deliveries or more."""
        member = rig.join(topic, group)
        rig.poll_for(count, member, seconds=self.takeover)
        rig.poll_for_more(member)
        return member
