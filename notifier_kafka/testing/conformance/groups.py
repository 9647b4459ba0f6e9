# ruff: noqa: S101
"""Clause 6: groups, their members, and where a group starts."""

import time

import pytest

from notifier_kafka.contract.driver import Start
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Member, Rig, offsets_of, positions_after, values


class Groups(Base):
    """Groups are independent; members of one group share its partitions."""

    def test_clause_6_every_group_gets_everything(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 60))
        one, other = rig.join(topic, rig.name()), rig.join(topic, rig.name())
        rig.poll_for(120, one, other)
        rig.poll_for_more(one, other)
        assert values(one.deliveries) == values(other.deliveries)
        assert len(one.deliveries) == 60

    def test_clause_6_a_commit_moves_no_other_group(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 60))
        busy, idle = rig.name(), rig.name()
        member = rig.join(topic, busy)
        rig.poll_for(60, member)
        member.subscription.commit(positions_after(member.deliveries))
        assert not any(rig.admin().describe_group(idle).positions.values())
        late = rig.join(topic, idle)
        rig.poll_for(60, late)
        assert len(late.deliveries) == 60

    def test_clause_6_within_a_group_a_partition_has_one_owner(self, rig: Rig) -> None:
        topic = rig.topic(partitions=4)
        group = rig.name()
        members = [rig.join(topic, group), rig.join(topic, group)]
        rig.wait_for_assignment(group, *members)
        rig.publish(child.numbered(topic, 200))
        rig.poll_for(200, *members)
        rig.poll_for_more(*members)
        seen = [place for member in members for place in offsets_of(member.deliveries)]
        assert len(seen) == len(set(seen)) == 200
        one, other = ({partition for partition, _ in offsets_of(m.deliveries)} for m in members)
        assert one
        assert other
        assert not one & other

    def test_clause_6_more_members_than_partitions_share_without_overlap(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        group = rig.name()
        members = [rig.join(topic, group), rig.join(topic, group)]
        rig.wait_until(lambda: [m.poll() for m in members] and self._owners(rig, group) == 1, "one owner")
        rig.publish(child.numbered(topic, 50))
        rig.poll_for(50, *members)
        rig.poll_for_more(*members)
        assert sorted(len(member.deliveries) for member in members) == [0, 50]

    def test_clause_6_each_member_without_a_group_gets_everything(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 40))
        one, other = rig.join(topic, None), rig.join(topic, None)
        rig.poll_for(40, one)
        rig.poll_for(40, other)
        one.subscription.commit(positions_after(one.deliveries))
        rig.poll_for_more(one, other)
        assert len(one.deliveries) == len(other.deliveries) == 40

    def test_a_leaving_member_s_partitions_go_to_those_who_stay(self, rig: Rig) -> None:
        topic = rig.topic()
        group = rig.name()
        stays, leaves = rig.join(topic, group), rig.join(topic, group)
        rig.wait_for_assignment(group, stays, leaves)
        leaves.subscription.close()
        rig.publish(child.numbered(topic, 60))

        def all_there() -> bool:
            stays.poll()
            # Records of its first partitions may come twice: a rebalance takes them away and back.
            return len(set(offsets_of(stays.deliveries))) == 60

        rig.wait_until(all_there, "all records", self.takeover)

    def test_start_latest_skips_what_is_there(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 20))
        member = rig.join(topic, rig.name(), "latest")
        numbers = iter(range(20, 100_000))

        def arrived() -> bool:
            # A poll fixes where "latest" is; records published after that poll are delivered.
            rig.publish(child.numbered(topic, 1, first=next(numbers)))
            return bool(member.poll())

        rig.wait_until(arrived, "a new record")
        assert all(int(value or b"0") >= 20 for value in member.values())

    def test_start_at_a_time_skips_what_is_older(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        older = max(delivery.timestamp for delivery in rig.contents(topic))
        time.sleep(0.1)
        rig.publish(child.numbered(topic, 30, first=30))
        newer = min(d.timestamp for d in rig.contents(topic) if int(d.record.value or b"0") >= 30)
        assert older < newer
        member = rig.join(topic, rig.name(), newer)
        rig.poll_for(30, member)
        rig.poll_for_more(member)
        assert sorted(int(value or b"0") for value in member.values()) == list(range(30, 60))

    def test_a_committed_position_wins_over_the_start(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(30, member)
        member.subscription.commit(positions_after(member.deliveries))
        member.subscription.close()
        rig.publish(child.numbered(topic, 30, first=30))
        again = rig.join(topic, group, "latest")
        rig.poll_for(30, again, seconds=self.takeover)
        assert sorted(int(value or b"0") for value in again.values()) == list(range(30, 60))

    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_a_topic_that_appears_is_read_from_its_beginning(self, rig: Rig, start: Start) -> None:
        topic = rig.name()
        member = rig.join(topic, rig.name(), start)
        rig.poll_for_more(member)
        rig.admin().create_topic(topic, 2)
        rig.publish(child.numbered(topic, 40))
        rig.poll_for(40, member, seconds=self.takeover)
        assert len(member.deliveries) == 40

    def test_one_subscription_takes_several_topics(self, rig: Rig) -> None:
        topics = [rig.topic(), rig.topic()]
        for topic in topics:
            rig.publish(child.numbered(topic, 30))
        member = Member(rig.connect().subscribe(topics, rig.name(), "earliest"))
        rig.poll_for(60, member)
        assert {delivery.record.topic for delivery in member.deliveries} == set(topics)

    def _owners(self, rig: Rig, group: str) -> int:
        members = rig.admin().describe_group(group).members
        return len(members) == 2 and sum(map(len, members.values()))
