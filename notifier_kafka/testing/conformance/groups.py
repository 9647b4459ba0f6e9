# ruff: noqa: S101
"""Clause 6: groups, their members, and where they begin."""

import time

import pytest

from notifier_kafka.contract.driver import Start
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Member, Rig, after, places, values


class Groups(Base):
    """What groups promise each other, and their members."""

    def test_clause_6_every_group_gets_everything(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 60))
        one, other = rig.join(topic, rig.name()), rig.join(topic, rig.name())
        rig.gather(120, one, other)
        rig.linger(one, other)
        assert values(one.deliveries) == values(other.deliveries)
        assert len(one.deliveries) == 60

    def test_clause_6_a_commit_moves_no_other_group(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 60))
        busy, idle = rig.name(), rig.name()
        member = rig.join(topic, busy)
        rig.gather(60, member)
        member.subscription.commit(after(member.deliveries))
        assert not any(rig.admin().describe_group(idle).positions.values())
        late = rig.join(topic, idle)
        rig.gather(60, late)
        assert len(late.deliveries) == 60

    def test_clause_6_within_a_group_a_partition_has_one_owner(self, rig: Rig) -> None:
        topic = rig.topic(partitions=4)
        group = rig.name()
        members = [rig.join(topic, group), rig.join(topic, group)]
        rig.settle(group, *members)
        rig.publish(child.numbered(topic, 200))
        rig.gather(200, *members)
        rig.linger(*members)
        seen = [place for member in members for place in places(member.deliveries)]
        assert len(seen) == len(set(seen)) == 200
        one, other = ({partition for partition, _ in places(m.deliveries)} for m in members)
        assert one
        assert other
        assert not one & other

    def test_clause_6_more_members_than_partitions_share_without_overlap(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        group = rig.name()
        members = [rig.join(topic, group), rig.join(topic, group)]
        rig.until(lambda: [m.poll() for m in members] and self._owners(rig, group) == 1, "one owner")
        rig.publish(child.numbered(topic, 50))
        rig.gather(50, *members)
        rig.linger(*members)
        assert sorted(len(member.deliveries) for member in members) == [0, 50]

    def test_clause_6_no_group_is_a_group_of_its_own(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 40))
        one, other = rig.join(topic, None), rig.join(topic, None)
        rig.gather(40, one)
        rig.gather(40, other)
        one.subscription.commit(after(one.deliveries))
        rig.linger(one, other)
        assert len(one.deliveries) == len(other.deliveries) == 40

    def test_a_leaving_member_s_partitions_go_to_those_who_stay(self, rig: Rig) -> None:
        topic = rig.topic()
        group = rig.name()
        stays, leaves = rig.join(topic, group), rig.join(topic, group)
        rig.settle(group, stays, leaves)
        leaves.subscription.close()
        rig.publish(child.numbered(topic, 60))

        def all_there() -> bool:
            stays.poll()
            # What was its own may come twice, as it is lost and regained with the rest.
            return len(set(places(stays.deliveries))) == 60

        rig.until(all_there, "all of it", self.takeover)

    def test_start_latest_skips_what_is_there(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 20))
        member = rig.join(topic, rig.name(), "latest")
        numbers = iter(range(20, 100_000))

        def arrived() -> bool:
            # Where "latest" is gets settled in some poll: what comes after that is delivered.
            rig.publish(child.numbered(topic, 1, first=next(numbers)))
            return bool(member.poll())

        rig.until(arrived, "a new record")
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
        rig.gather(30, member)
        rig.linger(member)
        assert sorted(int(value or b"0") for value in member.values()) == list(range(30, 60))

    def test_a_position_outweighs_the_start(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.gather(30, member)
        member.subscription.commit(after(member.deliveries))
        member.subscription.close()
        rig.publish(child.numbered(topic, 30, first=30))
        again = rig.join(topic, group, "latest")
        rig.gather(30, again, seconds=self.takeover)
        assert sorted(int(value or b"0") for value in again.values()) == list(range(30, 60))

    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_a_topic_that_appears_is_read_from_its_beginning(self, rig: Rig, start: Start) -> None:
        topic = rig.name()
        member = rig.join(topic, rig.name(), start)
        rig.linger(member)
        rig.admin().create_topic(topic, 2)
        rig.publish(child.numbered(topic, 40))
        rig.gather(40, member, seconds=self.takeover)
        assert len(member.deliveries) == 40

    def test_one_subscription_takes_several_topics(self, rig: Rig) -> None:
        topics = [rig.topic(), rig.topic()]
        for topic in topics:
            rig.publish(child.numbered(topic, 30))
        member = Member(rig.connect().subscribe(topics, rig.name(), "earliest"))
        rig.gather(60, member)
        assert {delivery.record.topic for delivery in member.deliveries} == set(topics)

    def _owners(self, rig: Rig, group: str) -> int:
        members = rig.admin().describe_group(group).members
        return len(members) == 2 and sum(map(len, members.values()))
