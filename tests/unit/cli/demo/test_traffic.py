"""The day that the demonstration publishes."""

import datetime

import pytest

from notifier_kafka.cli.demo import traffic
from notifier_kafka.notification import PRIORITIES


def test_the_same_day_comes_again() -> None:
    assert traffic.make_events(2_000) == traffic.make_events(2_000)


@pytest.mark.parametrize("count", [1, 2, 3, 999, 5_000])
def test_there_are_as_many_events_as_asked_for_in_order(count: int) -> None:
    events = traffic.make_events(count)
    assert len(events) == count
    assert events == sorted(events, key=lambda event: event.second)


def test_every_event_is_within_the_day_and_of_a_known_priority() -> None:
    for event in traffic.make_events(5_000):
        assert 0 <= event.second < traffic.DAY_SECONDS
        assert event.priority in PRIORITIES


def test_notifications_are_of_the_day_and_those_held_back_are_late() -> None:
    midnight = datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC)
    on_time, duplicates, late = traffic.make_traffic(5_000, midnight)
    times = [str(each.timestamp) for each in (*on_time, *late)]
    assert len(times) == len({each.message_id for each in (*on_time, *late)}) == 5_000
    assert all(time.startswith("2026-01-15 ") for time in times)
    assert duplicates
    assert {each.message_id for each in duplicates} <= {each.message_id for each in on_time}
    # Many later ones come before these, so they are late whatever the window.
    assert late
    assert max(str(each.timestamp) for each in late) < sorted(str(each.timestamp) for each in on_time)[-2000]


def test_starts_have_an_end_or_an_error_and_errors_come_in_a_burst_of_one_host() -> None:
    events = traffic.make_events(20_000)
    starts = [e.payload["request_id"] for e in events if e.event_type.endswith(".start")]
    ends = [e.payload["request_id"] for e in events if e.event_type.endswith((".end", ".error"))]
    # The last pair may have been cut at the count.
    assert len(set(starts) ^ set(ends)) <= 1
    errors = [e for e in events if e.priority == "error"]
    assert len(errors) > 50
    assert {e.publisher_id for e in errors} == {traffic.FAILING_HOST}
    assert all(traffic.OUTAGE_SECONDS[0] <= e.second < traffic.OUTAGE_SECONDS[1] + 3600 for e in errors)
