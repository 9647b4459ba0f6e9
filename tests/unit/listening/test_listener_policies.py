"""When a listener commits, where it starts, what it deduplicates and how long a failure waits."""

import functools
import threading
import time
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.config.options import ListenerPolicy
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import ConfigurationError, ServerListenError
from notifier_kafka.listening import listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.wire import codec
from tests.shared.listening_kit import (
    TARGETS,
    Batches,
    Recorder,
    committed,
    counted,
    listen,
    put,
    records,
    refuse_once,
    send,
    wait_for,
)

ONLY = Partition("notifications.info", 0)
RETURNS = "pool.requeue.notifications.info"
SLOW: ListenerPolicy = {"requeue_delay": 60.0, "requeue_delay_max": 60.0}


@pytest.fixture
def bus(quick: cfg.ConfigOpts) -> Any:
    """A transport whose topic has one partition."""
    made = transport.get_notification_transport(quick)
    made.driver.admin().create_topic(ONLY.topic, 1)
    yield made
    made.cleanup()


class Positions(Recorder):
    """Records what ``positions`` returns while each notification is handled."""

    each: listener.Listener

    def info(self, *message: Any) -> Any:
        answer = super().info(*message)
        self.seen[-1] = (self.seen[-1], self.each.positions().get(ONLY))
        return answer


def has_come(endpoint: Recorder, payload: Any) -> bool:
    return payload in endpoint.seen


def positioned(bus: transport.NotificationTransport, **options: Any) -> tuple[Positions, listener.Listener]:
    endpoint = Positions()
    endpoint.each = listen(bus, endpoint, **options)
    return endpoint, endpoint.each


# At most once


def test_at_most_once_everything_is_committed_before_it_is_handled(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("delivery", "at-most-once", group="listener")
    found: list[int] = []
    endpoint = Recorder(lambda payload: found.append(committed(bus)[ONLY]))
    send(bus, range(5))
    with listen(bus, endpoint):
        wait_for(lambda: len(endpoint.seen) == 5, "all")
    assert found == [5] * 5


def test_at_least_once_nothing_is_committed_before_it_is_handled(bus: Any) -> None:
    found: list[int] = []
    endpoint = Recorder(lambda payload: found.append(committed(bus).get(ONLY, 0)))
    send(bus, range(5))
    with listen(bus, endpoint):
        wait_for(lambda: len(endpoint.seen) == 5, "all")
    assert found == [0] * 5


def test_at_most_once_nothing_comes_back(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("delivery", "at-most-once", group="listener")
    endpoint = Recorder(lambda payload: NotificationResult.REQUEUE if payload == 1 else 1 // payload)
    send(bus, range(3))
    with listen(bus, endpoint, allow_requeue=True) as each:
        wait_for(lambda: len(endpoint.seen) == 3, "all")
    assert endpoint.seen == [0, 1, 2]
    assert counted(each) == {"handled": 1, "refused": 1, "dead_lettered": 1}
    assert records(bus, RETURNS) == []
    assert len(records(bus, "pool.dead-letters")) == 1


def test_at_most_once_a_stop_waits_for_all_that_was_committed(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("delivery", "at-most-once", group="listener")
    endpoint = Recorder(lambda payload: each.stop())
    send(bus, range(10))
    each = listen(bus, endpoint)
    each.start()
    each.wait()
    assert endpoint.seen == list(range(10))
    with listen(bus, endpoint):
        send(bus, ["next"])
        wait_for(lambda: endpoint.seen[-1] == "next", "the next")
    assert endpoint.seen == [*range(10), "next"]


# Duplicates


def forward_twice(bus: Any) -> None:
    """Publish everything on the topic a second time, as a spool does after a crash."""
    put(bus, *[delivery.record.value for delivery in records(bus, ONLY.topic)])


@pytest.mark.parametrize("workers", [1, 3])
def test_a_duplicate_within_the_window_is_passed_over(bus: Any, quick: cfg.ConfigOpts, workers: int) -> None:
    quick.set_override("dedupe_window", 100, group="listener")
    quick.set_override("workers", workers, group="listener")
    endpoint = Recorder()
    send(bus, range(20))
    forward_twice(bus)
    with listen(bus, endpoint) as each:
        wait_for(lambda: each.stats()["duplicates"] == 20, "the duplicates in the batch")
        forward_twice(bus)
        wait_for(lambda: each.stats()["duplicates"] == 60, "the later ones")
    assert endpoint.seen == list(range(20))
    assert counted(each) == {"handled": 20, "duplicates": 60}
    assert committed(bus)[ONLY] == 80


def test_the_window_forgets_what_is_older(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("dedupe_window", 5, group="listener")
    quick.set_override("batch_size", 1, group="listener")
    endpoint = Recorder()
    send(bus, range(8))
    forward_twice(bus)
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 16, "all of them twice")
    assert counted(each) == {"handled": 16}


def test_without_a_window_duplicates_are_handled(bus: Any) -> None:
    endpoint = Recorder()
    send(bus, range(3))
    forward_twice(bus)
    with listen(bus, endpoint):
        wait_for(lambda: len(endpoint.seen) == 6, "all")


def test_what_is_refused_is_no_duplicate_when_it_comes_back(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("dedupe_window", 100, group="listener")
    endpoint = Recorder(refuse_once(1))
    send(bus, range(3))
    with listen(bus, endpoint, allow_requeue=True) as each:
        wait_for(lambda: len(endpoint.seen) == 4, "the refused one")
        forward_twice(bus)
        wait_for(lambda: each.stats()["duplicates"] == 3, "the duplicates")
    assert endpoint.seen == [0, 1, 2, 1]


# Waiting


def test_one_that_waits_long_holds_up_no_other(bus: Any, quick: cfg.ConfigOpts) -> None:
    """A notification that failed four times waits for a minute; one refused meanwhile comes back soon."""
    quick.set_override("requeue_delay", 60.0, group="listener")
    quick.set_override("requeue_delay_max", 60.0, group="listener")
    patient = Recorder(lambda payload: NotificationResult.REQUEUE)
    send(bus, ["waits"])
    with listen(bus, patient, allow_requeue=True) as each:
        wait_for(lambda: each.stats()["requeued"], "the one that waits")
    quick.set_override("requeue_delay", 0.05, group="listener")
    hasty = Recorder(refuse_once("soon"))
    with listen(bus, hasty, allow_requeue=True):
        send(bus, ["soon"])
        wait_for(lambda: hasty.seen == ["soon", "soon"], "the hasty one")
    # The position stays before the one that waits, although others behind it are handled.
    positions = committed(bus)
    waiting = [d for d in records(bus, RETURNS) if codec.decode(d.record).payload == "waits"]
    assert [positions.get(d.partition, 0) <= d.offset for d in waiting][-1]


def test_what_was_handled_does_not_come_again_because_another_waits(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("requeue_delay_max", 60.0, group="listener")
    failed: set[Any] = set()

    def once(payload: Any) -> None:
        if payload not in failed:
            failed.add(payload)
            raise ZeroDivisionError

    hopeless = Recorder(lambda payload: NotificationResult.REQUEUE)
    send(bus, ["waits"])
    with listen(bus, hopeless, allow_requeue=True, policy=SLOW) as each:
        wait_for(lambda: each.stats()["requeued"], "the one that waits")
    endpoint = Recorder(once)
    with listen(bus, endpoint, allow_requeue=True, policy=SLOW | {"requeue_delay": 0.05}):
        send(bus, range(30))
        wait_for(lambda: len(endpoint.seen) == 60, "each of the others twice")
    later = Recorder()
    with listen(bus, later, allow_requeue=True, policy=SLOW):
        send(bus, ["last"])
        wait_for(lambda: "last" in later.seen, "the last one")
    assert later.seen == ["last"]
    final = Recorder()
    with listen(
        bus, final, allow_requeue=True, policy=SLOW | {"requeue_delay_max": 0.0, "requeue_delay": 0.0}
    ):
        wait_for(lambda: final.seen, "the one that waited")
    assert final.seen == ["waits"]


def test_more_than_a_batch_that_waits_holds_up_no_other(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("batch_size", 2, group="listener")
    patient = Recorder(lambda payload: NotificationResult.REQUEUE)
    send(bus, range(20))
    with listen(bus, patient, allow_requeue=True, policy=SLOW) as each:
        wait_for(lambda: each.stats()["requeued"] == 20, "those that wait")
    hasty = Recorder(refuse_once("soon"))
    with listen(bus, hasty, allow_requeue=True, policy=SLOW | {"requeue_delay": 0.05}):
        send(bus, ["soon"])
        wait_for(lambda: hasty.seen == ["soon", "soon"], "the hasty one")


@pytest.mark.parametrize("in_place", [False, True])
def test_refusals_do_not_count_as_failures(bus: Any, quick: cfg.ConfigOpts, in_place: bool) -> None:
    """After refusals, an endpoint may still fail ``max_attempts`` times."""
    quick.set_override("max_attempts", 2, group="listener")
    answers = iter([NotificationResult.REQUEUE] * 4)

    def answer(_payload: Any) -> Any:
        return next(answers, None) or 1 // 0

    endpoint = Recorder(answer)
    send(bus, ["hard"])
    each = listen(bus, endpoint, allow_requeue=True)
    if in_place:
        each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: each.stats()["dead_lettered"], "the dead letter")
    assert len(endpoint.seen) == 6
    (letter,) = records(bus, "pool.dead-letters")
    assert dict(letter.record.headers)["dead-letter-reason"].endswith(b"in attempt 6")
    assert dict(letter.record.headers)["requeue-attempt"] == b"6"


# Start positions


def test_a_pool_begins_anew_at_a_time_an_offset_or_an_end(bus: Any) -> None:
    send(bus, range(5))
    time.sleep(0.01)
    moment = time.time()
    time.sleep(0.01)
    send(bus, range(5, 10))
    with listen(bus, Recorder()) as first:
        wait_for(lambda: first.stats()["handled"] == 10, "all")
    for place, expected in (
        ("earliest", list(range(10))),
        (moment, list(range(5, 10))),
        (7, [7, 8, 9]),
        ({ONLY: 9}, [9]),
        ({("notifications.info", 0): 400}, []),
        ("latest", []),
    ):
        again = Recorder()
        each = listen(bus, again)
        each.start_from(place)  # type: ignore[arg-type]
        with each:
            send(bus, ["end"])
            wait_for(functools.partial(has_come, again, "end"), "the end")
        assert [payload for payload in again.seen if payload != "end"] == expected


def test_a_pool_with_members_is_not_moved(bus: Any) -> None:
    endpoint = Recorder()
    send(bus, [1])
    with listen(bus, endpoint):
        wait_for(lambda: endpoint.seen, "the first")
        each = listen(bus, Recorder())
        each.start_from("earliest")
        with pytest.raises(ServerListenError, match="members"):
            each.start()


def test_a_replay_touches_no_pool(bus: Any) -> None:
    send(bus, range(10))
    put(bus, b"malformed")
    moment = time.time()
    time.sleep(0.01)
    send(bus, ["later"])
    endpoint = Recorder(lambda payload: NotificationResult.REQUEUE if payload == 3 else None)
    each = listen(bus, endpoint)
    assert each.replay() == {"handled": 10, "refused": 1, "malformed": 1}
    assert endpoint.seen == [*range(10), "later"]
    assert each.replay(since=8, until=moment) == {"handled": 2, "refused": 0, "malformed": 1}
    assert endpoint.seen[11:] == [8, 9]
    assert bus.driver.admin().list_groups() == []
    assert bus.driver.admin().list_topics() == [ONLY.topic]


def test_a_replay_to_coroutines_leaves_no_thread(bus: Any) -> None:
    threads: set[threading.Thread] = set()

    class Async:
        async def info(self, *_message: Any) -> None:
            threads.add(threading.current_thread())

    send(bus, range(3))
    assert listen(bus, Async()).replay()["handled"] == 3
    assert [thread.is_alive() for thread in threads] == [False]


def test_a_start_position_on_missing_topics_is_not_an_error(quick: cfg.ConfigOpts) -> None:
    elsewhere = transport.get_notification_transport(quick)
    endpoint = Recorder()
    each = listen(elsewhere, endpoint)
    each.start_from("earliest")
    with each:
        send(elsewhere, ["first"])
        wait_for(lambda: endpoint.seen, "the first")
    elsewhere.cleanup()


# Positions


def test_positions_include_what_is_handled_just_now(bus: Any) -> None:
    endpoint, each = positioned(bus)
    assert each.positions() == {}
    send(bus, "abc")
    with each:
        wait_for(lambda: len(endpoint.seen) == 3, "all")
        send(bus, "d")
        wait_for(lambda: len(endpoint.seen) == 4, "the last")
    assert endpoint.seen == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert each.positions()[ONLY] == committed(bus)[ONLY] == 4


def test_positions_in_a_batch_are_behind_the_batch(bus: Any) -> None:
    seen: list[tuple[int, int | None]] = []

    class Whole:
        def info(self, messages: list[dict[str, Any]]) -> Any:
            seen.append((len(messages), each.positions().get(ONLY)))

    send(bus, range(25))
    each = listener.get_batch_notification_listener(bus, TARGETS, [Whole()], pool="pool", batch_size=10)
    with each:
        wait_for(lambda: len(seen) == 3, "three batches")
    assert seen == [(10, 10), (10, 20), (5, 25)]


def test_positions_in_a_batch_leave_out_lists_that_are_still_to_come(bus: Any) -> None:
    """A topic with two priorities, as other programs may write it."""
    seen: list[tuple[str, int | None]] = []

    class Both:
        def error(self, messages: list[dict[str, Any]]) -> Any:
            seen.append(("error", each.positions().get(ONLY)))

        def info(self, messages: list[dict[str, Any]]) -> Any:
            seen.append(("info", each.positions().get(ONLY)))

    put(bus, *[b'{"priority": "%s", "payload": 1}' % p for p in (b"ERROR", b"ERROR", b"INFO", b"ERROR")])
    each = listener.get_batch_notification_listener(bus, TARGETS, [Both()], pool="pool")
    with each:
        wait_for(lambda: len(seen) == 2, "both lists")
    assert seen == [("error", 2), ("info", 4)]


def test_the_handlers_own_position_counts_ahead_of_the_groups(bus: Any) -> None:
    send(bus, range(10))
    asked: list[Partition] = []
    endpoint, each = positioned(bus)
    each.resume_from(lambda partition: asked.append(partition) or 6)  # type: ignore[func-returns-value]
    with each:
        wait_for(lambda: len(endpoint.seen) == 4, "those behind the position")
    assert endpoint.seen == [(6, 7), (7, 8), (8, 9), (9, 10)]
    assert asked == [ONLY]


def test_the_handlers_own_position_counts_behind_the_groups(bus: Any) -> None:
    send(bus, range(10))
    with listen(bus, Recorder()) as first:
        wait_for(lambda: first.stats()["handled"] == 10, "all")
    endpoint, each = positioned(bus)
    each.resume_from({ONLY: 4}.get)
    with each:
        send(bus, ["more"])
        wait_for(lambda: endpoint.seen and endpoint.seen[-1][0] == "more", "the last")
    assert [payload for payload, _ in endpoint.seen] == [4, 5, 6, 7, 8, 9, "more"]


def test_a_position_whose_records_are_gone_goes_on_with_the_first_there_is(bus: Any) -> None:
    send(bus, range(10))
    bus.driver.admin().purge_topic(ONLY.topic)
    endpoint, each = positioned(bus)
    each.resume_from({ONLY: 4}.get)
    with each:
        send(bus, ["after"])
        wait_for(lambda: endpoint.seen, "what came after")
    assert endpoint.seen == [("after", 11)]


def test_without_a_position_of_its_own_a_handler_goes_on_from_the_groups(bus: Any) -> None:
    send(bus, range(3))
    endpoint, each = positioned(bus)
    each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: len(endpoint.seen) == 3, "all")


def test_with_own_positions_nothing_overtakes_what_is_refused(bus: Any) -> None:
    refuse, errors = refuse_once(1), [ValueError("2"), ValueError("2 again")]

    def answer(payload: Any) -> Any:
        if payload == 2 and errors:
            raise errors.pop()
        return refuse(payload)

    endpoint = Recorder(answer)
    send(bus, range(4))
    each = listen(bus, endpoint, allow_requeue=True)
    each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: each.stats()["handled"] == 4, "all")
    assert endpoint.seen == [0, 1, 1, 2, 2, 2, 3]
    assert counted(each) == {"handled": 4, "requeued": 3}
    assert records(bus, RETURNS) == []


def test_with_own_positions_a_dead_letter_is_durable_before_a_position_passes_it(
    bus: Any, quick: cfg.ConfigOpts
) -> None:
    """Otherwise a crash after the handler stored that position would lose it."""
    quick.set_override("max_attempts", 2, group="listener")
    found: list[tuple[int, int]] = []

    def answer(payload: Any) -> None:
        found.append((payload, len(records(bus, "pool.dead-letters"))))
        1 // payload

    send(bus, [2, 0, 1])
    each = listen(bus, Recorder(answer))
    each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: len(found) == 4, "all")
    assert found == [(2, 0), (0, 0), (0, 0), (1, 1)]
    (letter,) = records(bus, "pool.dead-letters")
    assert dict(letter.record.headers)["requeue-attempt"] == b"2"
    assert dict(letter.record.headers)["dead-letter-reason"].endswith(b"in attempt 2")


def test_with_own_positions_a_stop_ends_the_retries(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("requeue_delay", 60.0, group="listener")
    quick.set_override("requeue_delay_max", 60.0, group="listener")
    endpoint = Recorder(lambda payload: NotificationResult.REQUEUE if payload else None)
    send(bus, range(3))
    each = listen(bus, endpoint, allow_requeue=True)
    each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: len(endpoint.seen) == 2, "the refusal")
    assert endpoint.seen == [0, 1]
    assert committed(bus) == {ONLY: 1}


def test_a_batch_that_failed_is_left_out_of_the_positions(bus: Any) -> None:
    seen: list[tuple[str, int | None, int]] = []

    class Both:
        def error(self, messages: list[dict[str, Any]]) -> Any:
            if not seen:
                keep("error")
                raise ValueError("not now")

        def info(self, messages: list[dict[str, Any]]) -> Any:
            keep("info")

    def keep(priority: str) -> None:
        seen.append((priority, each.positions().get(ONLY), len(records(bus, "pool.dead-letters"))))

    found = b'{"priority": "INFO", "payload": 1}'
    put(bus, found, b"malformed", b'{"priority": "ERROR", "payload": 1}', found)
    each = listener.get_batch_notification_listener(bus, TARGETS, [Both()], pool="pool")
    each.resume_from(lambda partition: None)
    with each:
        wait_for(lambda: each.stats()["handled"] == 3, "the one that failed")
    # The errors come first, and one of the other list is before them; then up to the one that failed.
    assert seen == [("error", None, 1), ("info", 2, 1)]


def test_own_positions_need_one_worker(bus: Any, quick: cfg.ConfigOpts) -> None:
    quick.set_override("workers", 2, group="listener")
    with pytest.raises(ConfigurationError, match="workers = 1"):
        listen(bus, Recorder()).resume_from(lambda partition: None)
    quick.set_override("workers", 1, group="listener")
    quick.set_override("delivery", "at-most-once", group="listener")
    with pytest.raises(ConfigurationError, match="at-least-once"):
        listen(bus, Recorder()).resume_from(lambda partition: None)


# Lag


def test_the_lag_is_what_waits_for_the_group(bus: Any) -> None:
    send(bus, range(7))
    each = listen(bus, Recorder())
    assert each.lag() == {ONLY: 7}
    with each:
        wait_for(lambda: each.stats()["handled"] == 7, "all")
    assert each.lag() == {ONLY: 0}
    notifier.Notifier(bus, "host1").prepare(wait=True).info({}, "e", {})
    assert each.lag() == {ONLY: 1}


# A policy for each listener


def test_listeners_of_one_configuration_differ_in_their_policies(bus: Any) -> None:
    found: dict[str, list[int]] = {"one": [], "two": []}

    def note(pool: str) -> Recorder:
        return Recorder(lambda _payload: found[pool].append(committed(bus, pool).get(ONLY, 0)))

    one, two = note("one"), note("two")
    send(bus, range(5))
    with listen(bus, one, "one", policy={"delivery": "at-most-once"}), listen(bus, two, "two"):
        wait_for(lambda: len(one.seen) == len(two.seen) == 5, "all")
    assert found == {"one": [5] * 5, "two": [0] * 5}


def test_a_batch_listener_has_a_policy_too(bus: Any) -> None:
    endpoint = Batches()
    send(bus, range(5))
    each = listener.get_batch_notification_listener(
        bus, TARGETS, [endpoint], policy={"delivery": "at-most-once"}
    )
    with pytest.raises(ConfigurationError, match="at-least-once"):
        each.resume_from(lambda _: None)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"delivery": "sometimes"}, "the policy of a listener, delivery: .*at-least-once"),
        ({"workers": 0}, "the policy of a listener, workers: "),
        ({"workers": None}, "the policy of a listener, workers: "),
        ({"worker": 2}, "unknown option 'worker': did you mean workers"),
        ({"group": "g"}, "unknown option 'group'"),
    ],
)
def test_an_invalid_policy_is_refused(bus: Any, policy: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        listen(bus, Recorder(), policy=policy)
