"""Pending commits, and deliveries that wait for their time, over a real log."""

from collections import Counter
from collections.abc import Iterator

import pytest

from notifier_kafka.contract.driver import Delivery, Limits, Partition, Record
from notifier_kafka.listening.tracked_subscription import DelayedSubscription, TrackedSubscription
from notifier_kafka.publishing.transport import NotificationTransport
from tests.shared.listening_kit import TIMEOUT_SECONDS, committed, wait_for

TOPIC = "t"
ONLY = Partition(TOPIC, 0)


def publish(bus: NotificationTransport, count: int, partitions: int = 1) -> None:
    if TOPIC not in bus.driver.admin().list_topics():
        bus.driver.admin().create_topic(TOPIC, partitions)
    publisher = bus.driver.publisher(lambda _record, error: pytest.fail(str(error)), Limits())
    for number in range(count):
        publisher.offer(Record(TOPIC, b"%d" % number, b"%d" % number))
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    publisher.close()


@pytest.fixture
def subscription(notifier_transport: NotificationTransport) -> Iterator[DelayedSubscription]:
    publish(notifier_transport, 5)
    made = DelayedSubscription(notifier_transport.driver.subscribe([TOPIC], "pool", "earliest"))
    yield made
    made.close()


def due(subscription: DelayedSubscription, *offsets: int, limit: int = 100) -> list[int]:
    return [d.offset for d in subscription.poll_due(limit, lambda d: not offsets or d.offset in offsets)]


def test_a_waiting_delivery_delays_no_other_and_holds_the_position(
    subscription: DelayedSubscription, notifier_transport: NotificationTransport
) -> None:
    assert due(subscription, 1, 3) == [1, 3]
    subscription.commit({ONLY: 4})
    assert committed(notifier_transport).get(ONLY, 0) == 0
    assert due(subscription, 0, 4) == [0, 4]
    subscription.commit({ONLY: 5})
    assert committed(notifier_transport)[ONLY] == 2
    assert due(subscription) == [2]
    subscription.commit({ONLY: 3})
    assert committed(notifier_transport)[ONLY] == 5
    assert due(subscription) == []


def test_a_waiting_delivery_is_overtaken_only_by_many(
    subscription: DelayedSubscription,
    notifier_transport: NotificationTransport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("notifier_kafka.listening.tracked_subscription.OVERTAKEN_RECORDS", 3)
    assert due(subscription, 1, 2) == [1, 2]
    subscription.commit({ONLY: 3})
    assert [d.offset for d in subscription.overtaken(leaving=False)] == []
    assert [d.offset for d in subscription.overtaken(leaving=True)] == [0]
    assert due(subscription, 3) == [3]
    subscription.commit({ONLY: 4})
    (first,) = subscription.overtaken(leaving=False)
    assert first.offset == 0
    subscription.release([first])
    assert committed(notifier_transport)[ONLY] == 4
    assert due(subscription) == [4]


def test_releasing_the_overtaken_keeps_the_unfinished(
    subscription: DelayedSubscription, notifier_transport: NotificationTransport
) -> None:
    assert due(subscription, 1, 4) == [1, 4]
    subscription.commit({ONLY: 5})
    assert due(subscription, 2, 3) == [2, 3]
    subscription.release([d for d in subscription.overtaken(leaving=True) if d.offset == 0])
    assert committed(notifier_transport)[ONLY] == 2
    assert due(subscription) == [2, 3]


def test_a_delivery_that_was_due_and_is_unfinished_goes_on_waiting(
    subscription: DelayedSubscription, notifier_transport: NotificationTransport
) -> None:
    assert due(subscription, 1, 2, 4) == [1, 2, 4]
    subscription.commit({ONLY: 2})
    assert due(subscription, 0, 1, 2) == [0, 2]
    subscription.redeliver([])
    assert due(subscription) == [0, 2, 3, 4]
    subscription.commit({ONLY: 5})
    assert committed(notifier_transport)[ONLY] == 5


def test_a_poll_adds_no_more_than_its_limit(subscription: DelayedSubscription) -> None:
    assert due(subscription, 99, limit=3) == []
    assert due(subscription, limit=3) == [0, 1, 2]
    subscription.commit({ONLY: 3})
    assert due(subscription, limit=3) == [3, 4]


@pytest.mark.parametrize("bound", [{"max_records": 3}, {"max_bytes": 3}])
def test_those_behind_what_waits_are_seen_up_to_a_bound(
    notifier_transport: NotificationTransport, bound: dict[str, int]
) -> None:
    publish(notifier_transport, 5)
    subscription = DelayedSubscription(
        notifier_transport.driver.subscribe([TOPIC], "pool", "earliest"), **bound
    )
    assert [due(subscription, 4, limit=1) for _ in range(5)] == [[]] * 5
    assert due(subscription, 2, 4, limit=1) == [2]
    subscription.commit({ONLY: 3})
    assert [due(subscription, 4, limit=1) for _ in range(2)] == [[]] * 2
    assert [due(subscription, 3, limit=1) for _ in range(2)] == [[3]] * 2
    subscription.commit({ONLY: 4})
    assert due(subscription, 4, limit=1) == [4]
    subscription.close()


def test_a_partition_that_is_back_begins_anew(notifier_transport: NotificationTransport) -> None:
    """None waits twice, and none is skipped because it was settled before."""
    bus = notifier_transport
    publish(bus, 40, partitions=2)
    subscription = DelayedSubscription(bus.driver.subscribe([TOPIC], "pool", "earliest"))
    first = subscription.poll_due(100, lambda d: d.offset % 2 == 1)
    subscription.commit({d.partition: d.offset + 1 for d in first})
    other = bus.driver.subscribe([TOPIC], "pool", "earliest")
    taken: list[Delivery] = []

    def hand_over() -> bool:
        subscription.poll_due(200, lambda d: False)
        taken.extend(other.poll(100, 0.1))
        return bool(taken)

    wait_for(hand_over, "the other member's partition")
    other.close()
    everything = sum(span.stop for span in bus.driver.spans([TOPIC]))
    back: Counter[tuple[Partition, int]] = Counter()

    def all_are_back() -> bool:
        found = subscription.poll_due(200, lambda d: True)
        back.update((d.partition, d.offset) for d in found)
        subscription.commit({d.partition: d.offset + 1 for d in found})
        return sum(committed(bus).values()) == everything

    wait_for(all_are_back, "everything")
    assert set(back.values()) == {1}
    lost = taken[0].partition
    assert {offset for partition, offset in back if partition == lost} == {
        d.offset for d in taken if d.partition == lost
    }
    subscription.close()


def test_a_commit_does_not_pass_deliveries_that_come_again(
    subscription: DelayedSubscription, notifier_transport: NotificationTransport
) -> None:
    assert due(subscription, 3) == [3]
    subscription.commit({ONLY: 4})
    subscription._subscription.seek({ONLY: 0})  # as after a rebalance
    assert due(subscription, 0, limit=5) == [0]
    subscription.commit({ONLY: 1})
    assert committed(notifier_transport)[ONLY] == 1


def test_a_claim_returns_what_is_still_ours(notifier_transport: NotificationTransport) -> None:
    publish(notifier_transport, 40, partitions=2)
    subscription = TrackedSubscription(notifier_transport.driver.subscribe([TOPIC], "pool", "earliest"))
    deliveries = subscription.poll(100, TIMEOUT_SECONDS)
    assert subscription.claim(deliveries) == deliveries
    assert sum(committed(notifier_transport).values()) == 40
    publish(notifier_transport, 40)
    deliveries = subscription.poll(100, TIMEOUT_SECONDS)
    other = notifier_transport.driver.subscribe([TOPIC], "pool", "earliest")
    wait_for(lambda: other.poll(1, 0.1) or subscription.poll(1, 0.1) is None, "the other member's partition")
    (kept,) = {d.partition for d in subscription.claim(deliveries)}
    assert kept in {span.partition for span in notifier_transport.driver.spans([TOPIC])}
    other.close()
    subscription.close()
