# ruff: noqa: S101
"""The ``Admin`` interface: topics and groups."""

import pytest

from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import GroupBusy, MessagingException, TopicNotFound
from notifier_kafka.testing import child
from notifier_kafka.testing.conformance.base import Base
from notifier_kafka.testing.conformance.rig import Rig, count_offsets, positions_after, values


class Administration(Base):
    """What an operator sees and does."""

    def test_admin_a_topic_is_described_with_what_it_holds(self, rig: Rig) -> None:
        topic = rig.topic(partitions=3)
        rig.publish(child.numbered(topic, 30))
        described = rig.admin().describe_topic(topic)
        assert described.name == topic
        assert {span.partition for span in described.spans} == {Partition(topic, n) for n in range(3)}
        assert count_offsets(described.spans) == 30

    def test_admin_creating_a_topic_again_leaves_it_as_it_is(self, rig: Rig) -> None:
        topic = rig.topic(partitions=2)
        rig.publish(child.numbered(topic, 10))
        with pytest.raises(MessagingException) as caught:
            rig.admin().create_topic(topic, 5)
        assert topic in str(caught.value)
        assert len(rig.admin().describe_topic(topic).spans) == 2
        assert len(rig.contents(topic)) == 10

    def test_admin_a_deleted_topic_is_gone(self, rig: Rig) -> None:
        topic, other = rig.topic(), rig.topic()
        rig.publish(child.numbered(topic, 10))
        rig.publish(child.numbered(other, 10))
        rig.admin().delete_topic(topic)
        rig.wait_until(lambda: topic not in rig.admin().list_topics(), "the topic to be deleted")
        with pytest.raises(TopicNotFound):
            rig.admin().describe_topic(topic)
        assert len(rig.contents(other)) == 10

    def test_admin_a_purged_topic_is_empty_and_its_offsets_go_on(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 20))
        rig.admin().purge_topic(topic)
        rig.wait_until(lambda: count_offsets(rig.driver.spans([topic])) == 0, "the topic to be empty")
        rig.publish(child.numbered(topic, 3))
        assert [delivery.offset for delivery in rig.contents(topic)] == [20, 21, 22]

    def test_admin_a_member_goes_on_after_a_purge(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        member = rig.join(topic, rig.name())
        rig.wait_until(lambda: member.poll(limit=1), "a first delivery")
        rig.admin().purge_topic(topic)
        rig.publish(child.numbered(topic, 30, first=30))
        wanted = {b"%d" % n for n in range(30, 60)}
        rig.wait_until(
            lambda: [member.poll(), wanted <= set(member.values())][-1], "the records after the purge"
        )

    def test_admin_a_group_is_described_with_members_positions_and_lag(self, rig: Rig) -> None:
        topic = rig.topic(partitions=1)
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(30, member)
        partition = Partition(topic, 0)
        member.subscription.commit({partition: 12})
        described = rig.admin().describe_group(group)
        assert described.name == group
        assert group in rig.admin().list_groups()
        assert list(described.members.values()) == [frozenset({partition})]
        assert dict(described.positions) == {partition: 12}
        assert dict(described.lag) == {partition: 18}
        member.subscription.close()
        rig.wait_until(lambda: not rig.admin().describe_group(group).members, "the member to be gone")
        assert dict(rig.admin().describe_group(group).positions) == {partition: 12}

    def test_admin_a_partition_without_a_position_lags_by_all_it_has(self, rig: Rig) -> None:
        topic, group = rig.topic(partitions=2), rig.name()
        rig.publish(child.numbered(topic, 40))
        holds = {span.partition: span.stop for span in rig.driver.spans([topic])}
        member = rig.join(topic, group)
        rig.poll_for(40, member)
        assert dict(rig.admin().describe_group(group).lag) == holds
        member.subscription.commit({Partition(topic, 0): holds[Partition(topic, 0)]})
        member.subscription.close()
        rig.wait_until(lambda: not rig.admin().describe_group(group).members, "the member to be gone")
        assert dict(rig.admin().describe_group(group).lag) == holds | {Partition(topic, 0): 0}

    def test_admin_a_group_without_a_name_is_not_listed(self, rig: Rig) -> None:
        topic, group = rig.topic(), rig.name()
        rig.publish(child.numbered(topic, 5))
        before = set(rig.admin().list_groups())
        rig.poll_for(5, rig.join(topic, None))
        rig.poll_for(5, rig.join(topic, group))
        # Others may use the log meanwhile: only groups that hold something of this topic are meant.
        new = set(rig.admin().list_groups()) - before
        assert {name for name in new if _holds(rig, name, topic)} == {group}

    def test_admin_a_group_is_reset_only_without_members(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(30, member)
        done = positions_after(member.deliveries)
        member.subscription.commit(done)
        with pytest.raises(GroupBusy):
            rig.admin().reset_group(group, dict.fromkeys(done, 0))
        assert dict(rig.admin().describe_group(group).positions) == done
        member.subscription.close()
        rig.wait_until(lambda: not rig.admin().describe_group(group).members, "the member to be gone")
        rig.admin().reset_group(group, dict.fromkeys(done, 0))
        again = rig.join(topic, group)
        rig.poll_for(30, again, seconds=self.takeover)
        assert len(again.deliveries) == 30

    def test_admin_a_topic_made_again_is_read_from_its_beginning(self, rig: Rig) -> None:
        topic = rig.topic()
        rig.publish(child.numbered(topic, 30))
        group = rig.name()
        member = rig.join(topic, group)
        rig.poll_for(30, member)
        member.subscription.commit(positions_after(member.deliveries))
        member.subscription.close()
        rig.admin().delete_topic(topic)
        rig.wait_until(lambda: topic not in rig.admin().list_topics(), "the topic to be deleted")
        rig.admin().create_topic(topic, 3)
        rig.publish(child.numbered(topic, 12, first=30))
        again = rig.join(topic, group)
        rig.poll_for(12, again, seconds=self.takeover)
        assert values(again.deliveries) == values(rig.contents(topic))


def _holds(rig: Rig, group: str, topic: str) -> bool:
    try:
        members = rig.admin().describe_group(group).members
    except MessagingException:
        return False  # somebody else's, and gone by now
    return any(partition.topic == topic for held in members.values() for partition in held)
