"""Listeners, over a real SQLite log."""

import contextlib
import functools
import itertools
import subprocess
import sys
import threading
import time
from concurrent import futures
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import (
    ExecutorLoadFailure,
    InvalidTarget,
    MessagingServerError,
    MessagingTimeout,
    ServerListenError,
    TaskTimeout,
)
from notifier_kafka.listening import listener, requeue
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.target import Target
from tests.shared.listening_kit import (
    TARGETS,
    TIMEOUT_SECONDS,
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
from tests.shared.log_lock import locked


def test_what_was_handled_is_committed_and_does_not_come_again(
    notifier_transport: transport.NotificationTransport,
) -> None:
    send(notifier_transport, range(100))
    first, second = Recorder(), Recorder()
    with listen(notifier_transport, first) as each:
        wait_for(lambda: len(first.seen) == 100, "all notifications")
    assert first.seen == list(range(100))
    assert counted(each) == {"handled": 100}
    with listen(notifier_transport, second):
        send(notifier_transport, ["last"])
        wait_for(lambda: second.seen, "the last one")
    assert second.seen == ["last"]


def test_a_signal_that_wakes_nobody_ends_a_listener_all_the_same(tmp_path: Path) -> None:
    """For the main thread that is the same as a signal that comes just before its wait begins."""
    script = f"""
import signal, threading, time
from notifier_kafka import target
from notifier_kafka.listening import listener
from notifier_kafka.publishing import transport
from oslo_config import cfg

class Endpoint:
    def info(self, *message): ...

bus = transport.get_notification_transport(cfg.ConfigOpts(), "sqlite:///{tmp_path}/bus.db")
each = listener.get_notification_listener(bus, [target.Target(topic="t")], [Endpoint()], pool="pool")
signal.signal(signal.SIGTERM, lambda *_: each.stop())
each.start()

def take():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep({2 * TIMEOUT_SECONDS})

threading.Thread(target=take, daemon=True).start()
each.wait()
print("ended")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert ended.stdout == "ended\n"


def test_a_signal_handler_may_wait_while_its_thread_does(tmp_path: Path) -> None:
    script = f"""
import signal, threading
from notifier_kafka import target
from notifier_kafka.listening import listener
from notifier_kafka.publishing import transport
from oslo_config import cfg

class Endpoint:
    def info(self, *message): ...

bus = transport.get_notification_transport(cfg.ConfigOpts(), "sqlite:///{tmp_path}/bus.db")
each = listener.get_notification_listener(bus, [target.Target(topic="t")], [Endpoint()], pool="pool")

def end(*_):
    each.stop()
    each.wait()
    print("handled")

signal.signal(signal.SIGTERM, end)
each.start()
main = threading.get_ident()
threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGTERM)).start()
each.wait()
print("ended")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert (ended.stdout, ended.stderr) == ("handled\nended\n", "")


def test_a_signal_handler_may_end_a_listener_that_starts(
    notifier_transport: transport.NotificationTransport,
) -> None:
    each = listen(notifier_transport, Recorder())
    left: list[list[str]] = []

    def end(frame: FrameType, event: str, _argument: object) -> None:
        """As a signal handler that Python runs when the thread has just been started."""
        started = frame.f_code is threading.Thread.start.__code__ and event == "return"
        if started and frame.f_locals["self"].name == "listener-pool":
            sys.setprofile(None)
            each.stop()
            each.wait()
            left.append([thread.name for thread in threading.enumerate() if thread.name == "listener-pool"])

    sys.setprofile(end)
    try:
        each.start()
    finally:
        sys.setprofile(None)
    assert left == [[]]


def test_a_listener_without_a_thread_may_be_started_again(
    notifier_transport: transport.NotificationTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Recorder()
    each = listen(notifier_transport, endpoint)
    with monkeypatch.context() as patched:

        def refuse(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ServerListenError, match="no thread to listen: can't start new thread"):
            each.start()
    each.wait()
    with each:
        send(notifier_transport, [1])
        wait_for(lambda: endpoint.seen == [1], "the notification")


def test_many_threads_may_wait_for_the_end(notifier_transport: transport.NotificationTransport) -> None:
    each = listen(notifier_transport, Recorder())
    each.start()
    with futures.ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(each.wait) for _ in range(16)]
        wait_for(lambda: all(one.running() for one in waiting), "all to wait")
        each.stop()
    assert [one.exception() for one in waiting] == [None] * 16


def test_pools_each_get_everything_and_members_share(
    notifier_transport: transport.NotificationTransport,
) -> None:
    one, two, alone = Recorder(), Recorder(), Recorder()
    sender = notifier.Notifier(notifier_transport, key="none")
    with (
        listen(notifier_transport, one),
        listen(notifier_transport, two),
        listen(notifier_transport, alone, "another"),
    ):
        sender.send_many({}, "info", [("e", number) for number in range(1_000)])
        wait_for(lambda: len(one.seen) + len(two.seen) >= 1_000 and len(alone.seen) >= 1_000, "both pools")
    assert sorted(one.seen + two.seen) == list(range(1_000))
    assert sorted(alone.seen) == list(range(1_000))


def test_requeue_brings_it_back_to_its_pool_only(quick: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(quick)
    fussy, calm = Recorder(refuse_once(1)), Recorder()
    send(bus, range(3))
    with listen(bus, fussy, allow_requeue=True) as each, listen(bus, calm, "calm"):
        wait_for(lambda: len(fussy.seen) >= 4, "the refused one")
        wait_for(lambda: len(calm.seen) >= 3, "the calm pool")
    assert fussy.seen == [0, 1, 2, 1]
    assert calm.seen == [0, 1, 2]
    assert each.stats()["requeued"] == 1
    bus.cleanup()


def test_requeue_survives_the_listener(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("requeue_delay", 60.0, group="listener")
    bus = transport.get_notification_transport(notifier_conf)
    refusing = Recorder(lambda payload: NotificationResult.REQUEUE)
    send(bus, ["again"])
    with listen(bus, refusing, allow_requeue=True) as each:
        wait_for(lambda: each.stats()["requeued"], "the refusal")
    assert refusing.seen == ["again"]
    notifier_conf.set_override("requeue_delay", 0.0, group="listener")
    notifier_conf.set_override("requeue_delay_max", 0.0, group="listener")
    later = Recorder()
    with listen(bus, later, allow_requeue=True):
        wait_for(lambda: later.seen, "the refused one")
    assert later.seen == ["again"]
    bus.cleanup()


def test_without_allow_requeue_a_refusal_is_acknowledged(quick: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(quick)
    refusing = Recorder(lambda payload: NotificationResult.REQUEUE)
    send(bus, range(2))
    with listen(bus, refusing) as each:
        wait_for(lambda: each.stats()["refused"] == 2, "two refusals")
    assert records(bus, "pool.requeue.notifications.info") == []
    bus.cleanup()


def test_a_poisonous_notification_is_tried_and_then_set_aside(quick: cfg.ConfigOpts) -> None:
    quick.set_override("max_attempts", 3, group="listener")
    bus = transport.get_notification_transport(quick)
    touchy = Recorder(lambda payload: 1 / payload)
    send(bus, [1, 0, 2])
    with listen(bus, touchy) as each:
        wait_for(lambda: each.stats()["dead_lettered"], "the dead letter")
    assert touchy.seen.count(0) == 3
    assert [payload for payload in touchy.seen if payload] == [1, 2]
    (letter,) = records(bus, "pool.dead-letters")
    headers = dict(letter.record.headers)
    assert headers["dead-letter-reason"] == b"endpoint raised ZeroDivisionError in attempt 3"
    assert headers["origin-topic"] == b"notifications.info"
    assert counted(each) == {"handled": 2, "requeued": 2, "dead_lettered": 1}
    bus.cleanup()


def test_malformed_records_are_set_aside_and_cost_no_neighbour(
    notifier_transport: transport.NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    send(notifier_transport, ["before"])
    bad = [
        None,
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"oslo.version": "9.9", "oslo.message": "{}"}',
        b'{"priority": "x"}',
    ]
    put(notifier_transport, *bad)
    send(notifier_transport, ["after"])
    endpoint = Recorder()
    with listen(notifier_transport, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 2, "the good ones")
    assert endpoint.seen == ["before", "after"]
    assert each.stats()["malformed"] == len(bad)
    letters = records(notifier_transport, "pool.dead-letters")
    assert [letter.record.value for letter in letters] == bad
    assert all(dict(letter.record.headers)["dead-letter-reason"] for letter in letters)
    lines = [r.getMessage() for r in caplog.records if "Malformed record set aside" in r.getMessage()]
    partition = letters[0].record.headers and dict(letters[0].record.headers)["origin-partition"].decode()
    assert lines[0].startswith(
        f"Malformed record set aside: topic notifications.info partition {partition} offset 1: "
    )
    assert len(lines) == len(bad)


def test_a_stop_takes_effect_between_notifications_and_commits_the_finished(
    notifier_transport: transport.NotificationTransport,
) -> None:
    send(notifier_transport, range(10))
    started, going = threading.Event(), threading.Event()

    def answer(payload: Any) -> None:
        if payload == 3:
            started.set()
            going.wait(TIMEOUT_SECONDS)

    slow, rest = Recorder(answer), Recorder()
    each = listen(notifier_transport, slow)
    each.start()
    assert started.wait(TIMEOUT_SECONDS)
    with pytest.raises(TaskTimeout) as caught:
        each.wait(0.05)
    assert isinstance(caught.value, MessagingServerError)
    assert isinstance(caught.value, MessagingTimeout)
    each.stop()
    going.set()
    each.wait(TIMEOUT_SECONDS)
    with listen(notifier_transport, rest):
        wait_for(lambda: len(rest.seen) == 6, "the rest")
    assert slow.seen == [0, 1, 2, 3]
    assert rest.seen == [4, 5, 6, 7, 8, 9]


def test_a_stop_waits_a_moment_for_dead_letters_to_be_stored(
    tmp_path: Path, notifier_conf: cfg.ConfigOpts
) -> None:
    log = tmp_path / "bus.db"
    bus = transport.get_notification_transport(notifier_conf, f"sqlite:///{log}?busy_timeout=0.1")
    send(bus, [0])
    put(bus, b"malformed")
    send(bus, [1])
    taken = threading.Event()
    with contextlib.ExitStack() as lock:

        def answer(payload: Any) -> None:
            if payload == 1:
                lock.enter_context(locked(log))
                taken.set()

        endpoint = Recorder(answer)
        each = listen(bus, endpoint)
        each.start()
        assert taken.wait(TIMEOUT_SECONDS)
        each.stop()
        # Longer than the listener takes to see the stop.
        time.sleep(2 * requeue.STOP_CHECK_SECONDS)
    each.wait(TIMEOUT_SECONDS)
    assert endpoint.seen == [0, 1]
    assert sum(committed(bus).values()) == 3
    assert len(records(bus, "pool.dead-letters")) == 1
    bus.cleanup()


def test_a_listener_may_be_started_again(notifier_transport: transport.NotificationTransport) -> None:
    endpoint = Recorder()
    each = listen(notifier_transport, endpoint)
    for number in range(2):
        each.start()
        send(notifier_transport, [number])
        wait_for(functools.partial(endpoint.seen.__contains__, number), "the notification")
        each.stop()
        each.wait()
    assert endpoint.seen == [0, 1]


def test_a_batch_has_its_size_at_most_and_what_is_there_at_least(
    notifier_transport: transport.NotificationTransport,
) -> None:
    send(notifier_transport, range(25))
    endpoint = Batches()
    with listener.get_batch_notification_listener(
        notifier_transport, TARGETS, [endpoint], pool="pool", batch_size=10
    ):
        wait_for(lambda: sum(map(len, endpoint.seen)) == 25, "all")
    assert [len(batch) for batch in endpoint.seen] == [10, 10, 5]


def test_a_batch_waits_for_more_until_its_timeout(
    notifier_transport: transport.NotificationTransport,
) -> None:
    endpoint = Batches()
    with listener.get_batch_notification_listener(
        notifier_transport, TARGETS, [endpoint], pool="pool", batch_size=4, batch_timeout=TIMEOUT_SECONDS
    ):
        for number in range(8):
            send(notifier_transport, [number])
        wait_for(lambda: len(endpoint.seen) == 2, "two full batches")
    assert endpoint.seen == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_refused_batch_comes_back(quick: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(quick)
    endpoint = Batches(refuse_once([0, 1, 2]))
    send(bus, range(3))
    with listener.get_batch_notification_listener(
        bus, TARGETS, [endpoint], pool="pool", allow_requeue=True, batch_size=3
    ):
        wait_for(lambda: sorted(itertools.chain(*endpoint.seen[1:])) == [0, 1, 2], "the batch again")
    bus.cleanup()


def test_listening_goes_on_after_the_log_was_locked(
    tmp_path: Path,
    notifier_conf: cfg.ConfigOpts,
) -> None:
    log = tmp_path / "bus.db"
    bus = transport.get_notification_transport(notifier_conf, f"sqlite:///{log}?busy_timeout=0.1")
    endpoint = Recorder()
    with listen(bus, endpoint):
        send(bus, ["before"])
        wait_for(lambda: endpoint.seen == ["before"], "the first")
        with locked(log):
            notifier.Notifier(bus).info({}, "e", "during")
            time.sleep(0.5)
        wait_for(lambda: endpoint.seen[-1] == "during", "the second")
    bus.cleanup()
    assert endpoint.seen == ["before", "during"]


def test_a_group_without_a_pool_is_named_after_the_program(
    notifier_transport: transport.NotificationTransport,
) -> None:
    endpoint = Recorder()
    with listener.get_notification_listener(notifier_transport, TARGETS, [endpoint]):
        send(notifier_transport, [1])
        wait_for(lambda: endpoint.seen, "the notification")
    assert "notifier-kafka-tests" in notifier_transport.driver.admin().list_groups()


def test_without_a_called_configuration_the_group_is_named_after_the_program_s_file() -> None:
    bus = transport.get_notification_transport(cfg.ConfigOpts(), "sqlite://")
    endpoint = Recorder()
    with listener.get_notification_listener(bus, TARGETS, [endpoint]):
        notifier.Notifier(bus, driver="messagingv2").info({}, "e", 1)
        wait_for(lambda: endpoint.seen, "the notification")
    assert bus.driver.admin().list_groups() == [Path(sys.argv[0]).stem]
    bus.cleanup()


def test_a_target_needs_a_topic(notifier_transport: transport.NotificationTransport) -> None:
    with pytest.raises(InvalidTarget, match="needs a topic"):
        listener.get_notification_listener(notifier_transport, [Target(exchange="x")], [Recorder()])


def test_an_executor_that_does_not_exist_is_an_error(
    notifier_transport: transport.NotificationTransport,
) -> None:
    with pytest.raises(ExecutorLoadFailure, match="'greenlet'"):
        listener.get_notification_listener(notifier_transport, TARGETS, [Recorder()], "greenlet")


def test_requeued_records_do_not_wait_behind_one_that_is_not_due(quick: cfg.ConfigOpts) -> None:
    """Records that wait keep their order, and none is lost meanwhile."""
    bus = transport.get_notification_transport(quick)
    refused: set[int] = set()

    def once(payload: int) -> Any:
        if payload in refused:
            return None
        refused.add(payload)
        return NotificationResult.REQUEUE

    endpoint = Recorder(once)
    send(bus, range(200))
    with listen(bus, endpoint, allow_requeue=True):
        wait_for(lambda: len(endpoint.seen) >= 400, "all of them twice")
    assert sorted(endpoint.seen) == sorted([*range(200), *range(200)])
    positions = bus.driver.admin().describe_group("pool").positions
    assert (
        sum(offset for partition, offset in positions.items() if partition.topic.startswith("pool.requeue"))
        == 200
    )
    bus.cleanup()


def test_what_is_refused_comes_back_only_to_who_listens_to_its_topic(quick: cfg.ConfigOpts) -> None:
    """Two listeners of one group on different topics, as in two parts of one program."""
    bus = transport.get_notification_transport(quick)
    refused: set[int] = set()

    def once(payload: int) -> Any:
        if payload in refused:
            return None
        refused.add(payload)
        return NotificationResult.REQUEUE

    fussy, other = Recorder(once), Recorder()
    sender = notifier.Notifier(bus, topics=["ta"], key="none").prepare(wait=True)
    with (
        listener.get_notification_listener(
            bus, [Target(topic="ta")], [fussy], pool="pool", allow_requeue=True
        ),
        listener.get_notification_listener(bus, [Target(topic="tb")], [other], pool="pool"),
    ):
        for number in range(8):
            sender.info({}, "e", number)
        wait_for(lambda: len(fussy.seen) == 16, "all eight again")
    assert sorted(fussy.seen) == sorted([*range(8), *range(8)])
    assert other.seen == []
    bus.cleanup()


def test_an_outage_while_a_batch_fills_loses_nothing(tmp_path: Path, notifier_conf: cfg.ConfigOpts) -> None:
    log = tmp_path / "bus.db"
    bus = transport.get_notification_transport(
        notifier_conf, f"sqlite:///{log}?busy_timeout=0.1&session_timeout=1"
    )
    endpoint = Batches()
    each = listener.get_batch_notification_listener(
        bus, TARGETS, [endpoint], pool="pool", batch_size=20, batch_timeout=3.0
    )
    send(bus, range(10))
    with each:
        time.sleep(0.5)
        with locked(log):
            time.sleep(2.0)
        send(bus, range(10, 20))
        wait_for(lambda: set(itertools.chain(*endpoint.seen)) == set(range(20)), "all of them")
    bus.cleanup()


def test_an_endpoint_that_calls_exit_counts_as_one_that_raised(quick: cfg.ConfigOpts) -> None:
    quick.set_override("max_attempts", 1, group="listener")
    bus = transport.get_notification_transport(quick)
    send(bus, ["exit", "go on"])

    def leave(payload: Any) -> None:
        if payload == "exit":
            raise SystemExit(3)

    endpoint = Recorder(leave)
    with listen(bus, endpoint):
        wait_for(lambda: endpoint.seen == ["exit", "go on"], "the next one")
    (letter,) = records(bus, "pool.dead-letters")
    assert dict(letter.record.headers)["dead-letter-reason"] == b"endpoint raised SystemExit in attempt 1"
    bus.cleanup()


def test_a_listener_that_ends_by_itself_says_so_and_leaves_its_group(
    notifier_transport: transport.NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    class Fatal(BaseException):
        pass

    def raise_fatal(payload: Any) -> None:
        raise Fatal

    send(notifier_transport, [1])
    each = listen(notifier_transport, Recorder(raise_fatal))
    each.start()
    with pytest.raises(ServerListenError, match="Fatal"):
        each.wait(TIMEOUT_SECONDS)
    assert "The listener of group pool ended" in caplog.text
    assert notifier_transport.driver.admin().describe_group("pool").members == {}


@pytest.mark.parametrize("stopped", [False, True])
def test_a_listener_that_ended_by_itself_may_be_started_again(
    notifier_transport: transport.NotificationTransport,
    caplog: pytest.LogCaptureFixture,
    stopped: bool,
) -> None:
    class Fatal(BaseException):
        pass

    heard: list[Any] = []

    def raise_fatal_once(payload: Any) -> None:
        heard.append(payload)
        if len(heard) == 1:
            raise Fatal

    each = listen(notifier_transport, Recorder(raise_fatal_once))
    each.start()
    send(notifier_transport, ["fatal"])
    wait_for(lambda: "The listener of group pool ended" in caplog.text, "the end")
    if stopped:
        each.stop()
    each.start()
    wait_for(lambda: len(heard) == 2, "the same again")
    each.stop()
    each.wait()


def test_a_dead_letter_that_cannot_be_stored_says_at_least_where_it_was(quick: cfg.ConfigOpts) -> None:
    """The added headers make a record larger: it may be too large then."""
    bus = transport.get_notification_transport(quick)
    publisher = bus.driver.publisher(lambda *_: None, Limits(bytes=100 * 1024 * 1024))
    publisher.offer(Record("notifications.info", b"x" * (64 * 1024 * 1024 - 10)))
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    send(bus, ["after"])
    endpoint = Recorder()
    with listen(bus, endpoint):
        wait_for(lambda: endpoint.seen == ["after"], "the next one")
    (letter,) = records(bus, "pool.dead-letters")
    assert letter.record.value is None
    headers = dict(letter.record.headers)
    assert headers["origin-topic"] == b"notifications.info"
    assert headers["origin-offset"] == b"0"
    assert b"cannot be stored again" in headers["dead-letter-reason"]
    publisher.close()
    bus.cleanup()


def test_start_after_stop_waits_for_the_end_by_itself(
    notifier_transport: transport.NotificationTransport,
) -> None:
    endpoint = Recorder()
    each = listen(notifier_transport, endpoint)
    for number in range(3):
        each.start()
        send(notifier_transport, [number])
        wait_for(functools.partial(endpoint.seen.__contains__, number), "the notification")
        each.stop()
    each.wait()
