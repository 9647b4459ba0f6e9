"""What the driver adds to the clients' groups: where they begin, membership, commits."""

import contextlib
import gc
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any, cast

import pytest

from notifier_kafka.contract.driver import Partition, Record, Start, Subscription
from notifier_kafka.errors import CommitRefused, ConfigurationError, TransportUnavailable
from notifier_kafka_drivers.kafka.listening.subscription import KafkaSubscription
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until


def numbered(topic: str, count: int, first: int = 0) -> list[Record]:
    return [Record(topic, b"%d" % n, b"key-%d" % (n % 16)) for n in range(first, first + count)]


def numbers(deliveries: list[Any]) -> list[int]:
    return sorted(int(delivery.record.value) for delivery in deliveries)


def test_latest_is_fixed_for_the_group_when_its_first_member_joins(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    first = driver.subscribe([topic], topic, "latest")
    until(lambda: not first.poll(10, 0.2) and driver.admin().describe_group(topic).positions, "the start")
    publish(driver, *numbered(topic, 20, first=20))
    assert numbers(gather(first, 20)) == list(range(20, 40))
    first.close()
    # Nothing was committed by the first: the next gets what came since, not what comes from now on.
    second = driver.subscribe([topic], topic, "latest")
    assert numbers(gather(second, 20)) == list(range(20, 40))


def test_a_time_to_begin_at_counts_only_where_there_is_no_position(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    first = driver.subscribe([topic], topic, 0.0)
    first.commit({delivery.partition: delivery.offset + 1 for delivery in gather(first, 20)})
    before = driver.admin().describe_group(topic).positions
    assert sum(before.values()) == 20
    second = driver.subscribe([topic], topic, 0.0)

    def shared() -> bool:
        assert [*first.poll(10, 0.1), *second.poll(10, 0.1)] == []
        return [len(owned) for owned in driver.admin().describe_group(topic).members.values()] == [1, 1]

    until(shared, "each to have a partition")
    assert [*first.poll(10, 0.1), *second.poll(10, 0.1)] == []
    assert driver.admin().describe_group(topic).positions == before


def test_an_anonymous_tail_has_what_comes_after_it(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    member = driver.subscribe([topic], None, "latest")
    until(lambda: not member.poll(10, 0.2) and member._consumer and member._consumer.owned, "its share")
    publish(driver, *numbered(topic, 5, first=20))
    assert numbers(gather(member, 5)) == list(range(20, 25))


def test_a_private_group_keeps_no_position_and_leaves_none(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    member = driver.subscribe([topic], None, "earliest")
    found = gather(member, 20)
    member.commit({delivery.partition: delivery.offset + 1 for delivery in found})
    group = member._group
    assert group in driver._admin().groups()
    assert group not in driver.admin().list_groups()
    assert driver.admin().describe_group(group).positions == {}


@pytest.mark.long
def test_a_member_at_work_for_longer_than_the_poll_interval_stays(connect: Connect, topic: str) -> None:
    driver = connect(poll_interval=6.0, session_timeout=6.0)
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 100))
    member = driver.subscribe([topic], topic, "earliest")
    found = gather(member, 30)
    (before,) = driver.admin().describe_group(topic).members
    time.sleep(15.0)  # the work; more than twice the interval
    assert list(driver.admin().describe_group(topic).members) == [before]
    member.commit({Partition(topic, 0): found[-1].offset + 1})
    assert driver.admin().describe_group(topic).positions == {Partition(topic, 0): 30}
    assert [delivery.offset for delivery in gather(member, 70)] == list(range(30, 100))


def test_a_start_that_fails_while_the_user_is_at_work_is_mended(connect: Connect, topic: str) -> None:
    driver = connect(poll_interval=6.0, session_timeout=6.0)
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    member: Any = driver.subscribe([topic], topic, 0.0)
    gather(member, 20)
    committed, failed = member._consumer.committed, threading.Event()

    def away(*asked: Any) -> Any:
        if threading.current_thread() is not member._busy_poller or failed.is_set():
            return committed(*asked)
        failed.set()
        raise TransportUnavailable("away for a moment")

    member._consumer.committed = away
    other = driver.subscribe([topic], topic, 0.0)

    def handle(each: Subscription) -> bool:
        for delivery in each.poll(100, 0.1):
            with contextlib.suppress(CommitRefused):
                each.commit({delivery.partition: delivery.offset + 1})
        return False

    until(lambda: handle(other) or failed.is_set(), "a start to fail")

    def all_handled() -> bool:
        handle(member)
        handle(other)
        return bool(sum(driver.admin().describe_group(topic).positions.values()) == 20)

    until(all_handled, "both to commit what they have")


def test_who_joins_does_not_wait_for_a_member_at_work(connect: Connect, topic: str) -> None:
    driver = connect(poll_interval=6.0, session_timeout=6.0)
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 100))
    busy = driver.subscribe([topic], topic, "earliest")
    found = gather(busy, 100)
    fresh = driver.subscribe([topic], topic, "earliest")
    taken = gather(fresh, 1)  # while the first works and does not poll
    with pytest.raises(CommitRefused) as refusal:
        busy.commit({delivery.partition: delivery.offset + 1 for delivery in found})
    assert taken[0].partition in refusal.value.partitions


@pytest.mark.long
def test_members_that_are_polled_in_turn_settle(connect: Connect, topic: str) -> None:
    """A join of one ends while the other is polled: it must count, not be begun again."""
    driver = connect()
    later = f"{topic}.later"
    driver.admin().create_topic(topic, 2)
    members = [driver.subscribe([topic, later], topic, "earliest") for _ in range(2)]
    seen: set[int] = set()

    def all_of(count: int) -> bool:
        for member in members:
            seen.update(numbers(list(member.poll(100, 0.2))))
        return len(seen) >= count

    publish(driver, *numbered(topic, 20))
    until(lambda: all_of(20) and all(driver.admin().describe_group(topic).members.values()), "members")
    # The leader of the group notices, and joins anew; the other hears of it at its next heartbeat.
    driver.admin().create_topic(later, 2)
    publish(driver, *numbered(later, 20, first=20))
    until(lambda: all_of(40), "what is in the new topic", 30.0)
    assert seen == set(range(40))


@pytest.mark.long
def test_who_waits_for_a_topic_that_is_not_there_has_the_others_join_once(
    connect: Connect, topic: str, client: str
) -> None:
    driver = connect(session_timeout=6.0)  # with a heartbeat every two seconds
    driver.admin().create_topic(topic, 1)
    first = cast(KafkaSubscription, driver.subscribe([topic], topic, "earliest"))
    start_offsets, joins = first._start_offsets, []

    def counted(partitions: Sequence[Partition]) -> dict[Partition, int]:
        joins.append(partitions)
        return cast(dict[Partition, int], start_offsets(partitions))

    first._start_offsets = counted
    until(lambda: [first.poll(1, 0.1), joins][-1], "the first to have joined")
    waits = driver.subscribe([f"{topic}.later"], topic, "earliest")

    def both() -> bool:
        first.poll(1, 0.1)
        waits.poll(1, 0.1)
        held = sorted(map(len, driver.admin().describe_group(topic).members.values()))
        # With confluent-kafka it is no member while it has nothing to read.
        return held == ([0, 1] if client == "kafka-python" else [1])

    until(both, "both to have joined")
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        both()
    assert len(joins) == (2 if client == "kafka-python" else 1)


@pytest.mark.long_with("kafka-python")
# A connection that kafka-python is just making when it is closed is left to the collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_who_leaves_while_it_joins_keeps_nobody_waiting(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))

    def come_and_go(polls: int) -> None:
        member = driver.subscribe([topic], topic, "earliest")
        until(lambda: member.poll(1, 0.0) or member._consumer, "a connection")
        for _ in range(polls):
            member.poll(1, 0.0)
            time.sleep(0.005)
        member.close()

    for polls in range(1, 8):  # some of them without a coordinator, or with an id and no more
        come_and_go(polls)
    stays = driver.subscribe([topic], topic, "earliest")
    gather(stays, 20, seconds=30.0)  # less than a session lasts
    come_and_go(30)  # and this one waits for a member at work

    def alone() -> bool:
        stays.poll(1, 0.2)
        return [len(owned) for owned in driver.admin().describe_group(topic).members.values()] == [2]

    until(alone, "the group to be its member alone", 30.0)
    gc.collect()  # here, and not in a later test


def test_a_static_member_is_the_same_after_a_restart(connect: Connect, topic: str) -> None:
    name = f"host-{uuid.uuid4().hex[:6]}"
    driver = connect(group_instance_id=name)
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 10))
    first = driver.subscribe([topic], topic, "earliest")
    gather(first, 10)
    before = dict(driver.admin().describe_group(topic).members)
    first.close()
    assert driver.admin().describe_group(topic).members == before
    assert list(before.values()) == [{Partition(topic, 0)}]
    second = connect(group_instance_id=name).subscribe([topic], topic, "earliest")
    assert len(gather(second, 10, seconds=20.0)) == 10


def lost(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [said for record in caplog.records if " lost " in (said := record.getMessage())]


def test_a_position_that_retention_took_goes_on_with_the_oldest_there_is(
    connect: Connect, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 20))
    member = driver.subscribe([topic], topic, "earliest")
    gather(member, 5)
    member.commit({Partition(topic, 0): 5})
    member.close()
    driver.admin().purge_topic(topic)
    publish(driver, *numbered(topic, 5, first=20))
    again = driver.subscribe([topic], topic, "earliest")
    assert numbers(gather(again, 5)) == list(range(20, 25))
    assert lost(caplog) == [
        f"Group {topic} lost 15 records of {topic}[0]: they were deleted before they were read"
    ]


def test_gaps_of_another_kind_are_no_losses(
    connect: Connect, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1)
    for n in range(5):
        transaction = driver.transaction()
        transaction.offer(numbered(topic, 1, first=n)[0])
        transaction.commit(30)
    publish(driver, *numbered(topic, 3, first=5))
    member = driver.subscribe([topic], topic, "earliest")
    found = gather(member, 8)
    assert numbers(found) == list(range(8))
    assert found[-1].offset == 12  # with the mark of each transaction
    assert lost(caplog) == []


@pytest.mark.parametrize(
    ("count", "start", "gone", "late"),
    # Fewer than were read, as many, and more; a slow endpoint's commit comes late, to the new topic.
    [
        (5, "earliest", True, False),
        (40, "latest", True, False),
        (20, "earliest", False, False),
        (5, "latest", False, True),
        (40, "earliest", False, True),
    ],
)
def test_a_topic_deleted_and_made_again_is_read_from_its_beginning(
    connect: Connect, topic: str, count: int, start: Start, gone: bool, late: bool
) -> None:
    driver, part = connect(), Partition(topic, 0)
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 20))
    driver.admin().reset_group(topic, {part: 0})
    member = cast(KafkaSubscription, driver.subscribe([topic], topic, start))
    gather(member, 20)
    if not late:
        member.commit({part: 20})
    known_by_id(member)
    driver.admin().delete_topic(topic)
    if gone:
        until(lambda: topic not in driver.admin().list_topics(), "the topic to go")
        for _ in range(5):
            assert list(member.poll(10, 0.2)) == []
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, count, first=20))
    if late:
        member.commit({part: 20})
        assert driver.admin().describe_group(topic).positions == {part: 20}
    seen: set[int] = set()

    def all_handled() -> bool:
        for delivery in member.poll(100, 0.2):
            seen.add(int(delivery.record.value or b""))
            member.commit({part: delivery.offset + 1})
        return driver.admin().describe_group(topic).positions == {part: count} and len(seen) >= count

    until(all_handled, "the new topic to be read and its position to be kept")
    assert seen == set(range(20, 20 + count))


def test_an_anonymous_tail_reads_a_topic_made_again_from_its_beginning(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 20))
    member = cast(KafkaSubscription, driver.subscribe([topic], None, "latest"))
    until(lambda: not member.poll(10, 0.2) and member._consumer and member._consumer.owned, "its share")
    known_by_id(member)
    driver.admin().delete_topic(topic)
    driver.admin().create_topic(topic, 1)
    publish(driver, *numbered(topic, 40, first=20))
    seen: set[int] = set()

    def all_seen() -> bool:
        seen.update(numbers(list(member.poll(100, 0.2))))
        return seen == set(range(20, 60))

    until(all_seen, "all of the new topic")


def known_by_id(member: KafkaSubscription) -> None:
    """Wait until its client knows by its id the topic that it reads, and will tell another one from it."""

    def known() -> bool:
        assert list(member.poll(10, 0.1)) == []
        return bool(member._topic_ids._ids)

    until(known, "the topic's id")


def test_a_client_that_goes_back_by_itself_goes_on_where_it_was(
    connect: Connect, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where a broker answers that was stopped, and does not know that it leads no more."""
    driver = connect()
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 40))
    member = cast(KafkaSubscription, driver.subscribe([topic], topic, "earliest"))
    assert numbers(gather(member, 40)) == list(range(40))
    assert member._consumer is not None
    member._consumer.seek(Partition(topic, 0), 0)
    publish(driver, *numbered(topic, 10, first=40))
    assert numbers(gather(member, 10)) == list(range(40, 50))
    # What goes on for long is a log that was cut off, by an election that was not clean.
    monkeypatch.setattr("notifier_kafka_drivers.kafka.listening.gaps.REWIND_DOUBT_SECONDS", 0.0)
    member._consumer.seek(Partition(topic, 0), 0)
    again = gather(member, 1)
    assert (again[0].partition, again[0].offset) == (Partition(topic, 0), 0)


def test_what_was_given_up_comes_again_when_its_partition_comes_back(connect: Connect, topic: str) -> None:
    driver = connect()
    driver.admin().create_topic(topic, 4)
    publish(driver, *numbered(topic, 40))
    first = cast(KafkaSubscription, driver.subscribe([topic], topic, "earliest"))
    seen = {(d.partition, d.offset) for d in gather(first, 40)}
    # As in the middle of a rebalance, when nothing is its own; too short a moment to be met.
    assert first._consumer is not None
    owned, first._consumer.owned = first._consumer.owned, set()
    with pytest.raises(CommitRefused):
        first.commit(dict.fromkeys(owned, 1))
    first._consumer.owned = owned
    second = driver.subscribe([topic], topic, "earliest")
    again: set[tuple[Partition, int]] = set()

    def all_came_again() -> bool:
        again.update((d.partition, d.offset) for each in (first, second) for d in each.poll(100, 0.2))
        return len(again) >= 40

    until(all_came_again, "what was given up, to either member")
    assert again == seen
    second.close()
    first.close()


def test_an_illegal_topic_is_refused_before_anything_waits_for_it(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="1 to 249"):
        connect().subscribe(["topic\n"], "g", "earliest")


def test_kip_848_where_the_client_has_it(connect: Connect, topic: str, client: str) -> None:
    driver = connect(group_protocol="consumer")
    driver.admin().create_topic(topic, 2)
    publish(driver, *numbered(topic, 20))
    member = driver.subscribe([topic], topic, "earliest")
    if client == "kafka-python":
        with pytest.raises(ConfigurationError, match="has classic only"):
            gather(member, 20)
        return
    found = gather(member, 20)
    member.commit({delivery.partition: delivery.offset + 1 for delivery in found})
    with pytest.raises(ConfigurationError, match="kafka-python cannot show"):
        connect(client="kafka-python").admin().describe_group(topic)
    other = driver.subscribe([topic], topic, "earliest")
    until(
        lambda: (
            [member.poll(1, 0.2), other.poll(1, 0.2)]
            and [len(p) for p in driver.admin().describe_group(topic).members.values()] == [1, 1]
        ),
        "both to have a partition",
    )
