"""Workers and coroutines, and the order that they keep."""

import asyncio
import collections
import functools
import threading
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Limits, Partition, Record
from notifier_kafka.errors import ServerListenError
from notifier_kafka.listening import listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing import notifier, transport
from tests.shared.listening_kit import (
    TARGETS,
    TIMEOUT_SECONDS,
    Recorder,
    committed,
    counted,
    listen,
    records,
    refuse_once,
    send,
    wait_for,
)

TOPIC = "notifications.info"


@pytest.fixture
def crowded(notifier_conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Two workers."""
    notifier_conf.set_override("workers", 2, group="listener")
    notifier_conf.set_override("requeue_delay", 0.05, group="listener")
    return notifier_conf


def keys_apart() -> tuple[str, str]:
    """Find keys of two different workers: hashes of bytes differ from run to run."""
    names = [f"key-{number}" for number in range(64)]
    return next(n for n in names if hash(n.encode()) % 2 == 0), next(
        n for n in names if hash(n.encode()) % 2 == 1
    )


def send_keyed(bus: transport.NotificationTransport, *keys: str) -> None:
    """Send a notification for each key; its payload has the key and its index."""
    sender = notifier.Notifier(bus, "host1", key="payload:k").prepare(wait=True)
    sender.send_many({}, "info", [("e", {"k": key, "n": number}) for number, key in enumerate(keys)])


class Keyed(Recorder):
    """Records pairs of key and number, in the order in which they are finished."""

    def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> Any:
        answer = self._answer(payload)
        self.seen.append((payload["k"], payload["n"]))
        return answer


class KeyedBatches(Keyed):
    def info(self, messages: list[dict[str, Any]]) -> Any:  # type: ignore[override]
        self.seen.append([(m["payload"]["k"], m["payload"]["n"]) for m in messages])


def has(endpoint: Recorder, count: int) -> bool:
    return len(endpoint.seen) == count


def in_order(seen: list[tuple[str, int]]) -> bool:
    by_key: dict[str, list[int]] = collections.defaultdict(list)
    for key, number in seen:
        by_key[key].append(number)
    return all(numbers == sorted(numbers) for numbers in by_key.values())


def test_workers_share_the_work_and_keep_the_order_of_each_key(crowded: cfg.ConfigOpts) -> None:
    crowded.set_override("workers", 4, group="listener")
    bus = transport.get_notification_transport(crowded)
    threads: set[int] = set()
    endpoint = Keyed(lambda payload: threads.add(threading.get_ident()))
    send_keyed(bus, *(f"key-{number % 50}" for number in range(3_000)))
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 3_000, "all")
    assert in_order(endpoint.seen)
    assert len(threads) > 1
    assert counted(each) == {"handled": 3_000}
    assert sum(committed(bus).values()) == 3_000
    bus.cleanup()


def test_two_keys_are_handled_at_the_same_time(crowded: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(crowded)
    meeting = threading.Barrier(2)
    endpoint = Keyed(lambda payload: meeting.wait(TIMEOUT_SECONDS) and None)
    send_keyed(bus, *keys_apart())
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 2, "both")
    assert counted(each) == {"handled": 2}
    bus.cleanup()


def test_unordered_one_key_is_handled_by_whoever_is_free(crowded: cfg.ConfigOpts) -> None:
    crowded.set_override("ordered", False, group="listener")
    bus = transport.get_notification_transport(crowded)
    meeting = threading.Barrier(2)
    endpoint = Keyed(lambda payload: meeting.wait(TIMEOUT_SECONDS) and None)
    send_keyed(bus, *["key"] * 10)
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 10, "all")
    assert counted(each) == {"handled": 10}
    bus.cleanup()


def test_ordered_one_key_is_never_handled_twice_at_a_time(crowded: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(crowded)
    busy = threading.Lock()

    def alone(_payload: Any) -> None:
        assert busy.acquire(blocking=False), "two at a time"
        threading.Event().wait(0.002)
        busy.release()

    endpoint = Keyed(alone)
    send_keyed(bus, *["key"] * 50)
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 50, "all")
    assert counted(each) == {"handled": 50}
    bus.cleanup()


def test_a_stop_commits_up_to_the_first_that_is_unfinished(crowded: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(crowded)
    bus.driver.admin().create_topic(TOPIC, 1)
    slow, quick = keys_apart()
    begun, released = threading.Event(), threading.Event()

    def answer(payload: Any) -> None:
        if payload["n"] == 0:
            begun.set()
            released.wait(TIMEOUT_SECONDS)

    first = Keyed(answer)
    send_keyed(bus, slow, slow, quick, quick)
    each = listen(bus, first)
    each.start()
    assert begun.wait(TIMEOUT_SECONDS)
    wait_for(lambda: len(first.seen) == 2, "the quick key")
    each.stop()
    released.set()
    each.wait(TIMEOUT_SECONDS)
    assert first.seen == [(quick, 2), (quick, 3), (slow, 0)]
    assert committed(bus) == {Partition(TOPIC, 0): 1}
    second = Keyed()
    with listen(bus, second):
        wait_for(lambda: len(second.seen) == 3, "the rest")
    assert sorted(number for _, number in second.seen) == [1, 2, 3]
    bus.cleanup()


def test_no_more_than_a_batch_is_in_memory(crowded: cfg.ConfigOpts) -> None:
    crowded.set_override("batch_size", 10, group="listener")
    bus = transport.get_notification_transport(crowded)
    bus.driver.admin().create_topic(TOPIC, 1)
    slow, quick = keys_apart()
    released = threading.Event()
    endpoint = Keyed(lambda payload: payload["n"] == 0 and released.wait(TIMEOUT_SECONDS) and None)
    send_keyed(bus, slow, *[quick] * 99)
    with listen(bus, endpoint):
        wait_for(lambda: len(endpoint.seen) == 9, "the rest of the batch")
        threading.Event().wait(0.5)
        assert len(endpoint.seen) == 9
        released.set()
        wait_for(lambda: len(endpoint.seen) == 100, "all")
    bus.cleanup()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_batch_is_shared_out(crowded: cfg.ConfigOpts, ordered: bool) -> None:
    crowded.set_override("ordered", ordered, group="listener")
    bus = transport.get_notification_transport(crowded)
    bus.driver.admin().create_topic(TOPIC, 1)
    endpoint = KeyedBatches()
    one, other = keys_apart()
    send_keyed(bus, *[one, other] * 20, *[one] * 20)
    batches = listener.get_batch_notification_listener(
        bus, TARGETS, [endpoint], pool="pool", batch_size=60, batch_timeout=1.0
    )
    with batches:
        wait_for(lambda: sum(map(len, endpoint.seen)) == 60, "all")
    assert sorted(number for batch in endpoint.seen for _, number in batch) == list(range(60))
    assert sorted(map(len, endpoint.seen)) == ([20, 40] if ordered else [30, 30])
    if ordered:
        assert [{key for key, _ in batch} for batch in endpoint.seen] in ([{one}, {other}], [{other}, {one}])
    bus.cleanup()


def test_refusals_failures_and_malformed_records_are_told_apart(crowded: cfg.ConfigOpts) -> None:
    crowded.set_override("max_attempts", 2, group="listener")
    bus = transport.get_notification_transport(crowded)

    def answer(payload: Any) -> Any:
        return 1 // 0 if payload["n"] == 3 else refuse(payload["n"])

    refuse = refuse_once(5)
    endpoint = Keyed(answer)
    send_keyed(bus, *(f"key-{number}" for number in range(10)))
    publisher = bus.driver.publisher(lambda _record, error: pytest.fail(str(error)), Limits())
    publisher.offer(Record(TOPIC, b"no JSON", b"key-1"))
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    publisher.close()
    with listen(bus, endpoint, allow_requeue=True) as each:
        wait_for(lambda: each.stats()["dead_lettered"] == 1 and len(endpoint.seen) == 10, "all")
        wait_for(lambda: each.stats()["malformed"] == 1, "the malformed one")
    assert counted(each) == {"handled": 9, "requeued": 2, "dead_lettered": 1, "malformed": 1}
    assert len(records(bus, "pool.dead-letters")) == 2
    bus.cleanup()


class Async(Recorder):
    """An endpoint whose method is a coroutine."""

    def __init__(self, answer: Any = lambda payload: None) -> None:
        super().__init__(answer)
        self.threads: set[threading.Thread] = set()

    async def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> Any:
        await asyncio.sleep(0)
        self.threads.add(threading.current_thread())
        self.seen.append(payload)
        return self._answer(payload)


def test_a_coroutine_is_awaited_one_after_the_other(quick: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(quick)
    endpoint = Async(refuse_once(7))
    send(bus, range(50))
    each = listen(bus, endpoint, allow_requeue=True)
    for more in (51, 101):
        each.start()
        wait_for(functools.partial(has, endpoint, more), "all")
        each.stop()
        each.wait()
        send(bus, range(50))
    # The refused one may come back before the rest is published.
    assert list(dict.fromkeys(endpoint.seen)) == list(range(50))
    assert counted(each) == {"handled": 100, "requeued": 1}
    assert len(endpoint.threads) == 2, "a loop for each start"
    assert not any(thread.is_alive() for thread in endpoint.threads)
    bus.cleanup()


def test_coroutines_of_different_keys_are_awaited_together(crowded: cfg.ConfigOpts) -> None:
    bus = transport.get_notification_transport(crowded)
    meeting = asyncio.Barrier(2)

    class Meeting(Keyed):
        async def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> None:
            await asyncio.wait_for(meeting.wait(), TIMEOUT_SECONDS)
            self.seen.append(payload)

    endpoint = Meeting()
    send_keyed(bus, *keys_apart())
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 2, "both")
    assert counted(each) == {"handled": 2}
    bus.cleanup()


@pytest.mark.parametrize("error", [ZeroDivisionError(), SystemExit(1), asyncio.CancelledError()])
def test_a_coroutine_that_raises_is_tried_again(quick: cfg.ConfigOpts, error: BaseException) -> None:
    bus = transport.get_notification_transport(quick)
    errors = [error]

    def answer(_payload: Any) -> None:
        if errors:
            raise errors.pop()

    endpoint = Async(answer)
    send(bus, ["once", "more"])
    with listen(bus, endpoint) as each:
        wait_for(lambda: len(endpoint.seen) == 3, "the one that failed")
    assert endpoint.seen == ["once", "more", "once"]
    assert counted(each) == {"handled": 2, "requeued": 1}
    bus.cleanup()


def test_a_batch_endpoint_may_be_a_coroutine(notifier_transport: transport.NotificationTransport) -> None:
    seen: list[int] = []

    class Batch:
        async def info(self, messages: list[dict[str, Any]]) -> str:
            await asyncio.sleep(0)
            seen.extend(message["payload"] for message in messages)
            return NotificationResult.HANDLED

    send(notifier_transport, range(10))
    with listener.get_batch_notification_listener(notifier_transport, TARGETS, [Batch()], pool="pool"):
        wait_for(lambda: len(seen) == 10, "all")
    assert seen == list(range(10))


def test_an_unexpected_error_in_a_worker_ends_the_listener(
    crowded: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture
) -> None:
    class Unheard(BaseException):
        pass

    def answer(_payload: Any) -> None:
        raise Unheard("of")

    bus = transport.get_notification_transport(crowded)
    send_keyed(bus, "key")
    each = listen(bus, Keyed(answer))
    each.start()
    with pytest.raises(ServerListenError, match="of"):
        each.wait(TIMEOUT_SECONDS)
    assert "The listener of group pool ended" in caplog.text
    assert committed(bus) == {}
    bus.cleanup()
