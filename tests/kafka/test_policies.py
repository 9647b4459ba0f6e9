"""Dead letters, replay, places and own positions of listeners, on a real broker with either client."""

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.cli import main
from notifier_kafka.contract.driver import Delivery, Partition
from notifier_kafka.listening.listener import Listener, get_notification_listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport
from notifier_kafka.target import Target
from tests.shared.kafka.kafka_rig import until

Run = Callable[..., Any]


class Endpoint:
    """Keeps numbers; answers as it is told."""

    def __init__(self, answer: Callable[[int], Any] = lambda number: None) -> None:
        self.handled: list[int] = []
        self.answer = answer

    def info(self, _context: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> Any:
        verdict = self.answer(payload)
        self.handled.append(payload)
        return verdict


@pytest.fixture
def bus(kafka_cluster: Any, client: str) -> Iterator[NotificationTransport]:
    conf = cfg.ConfigOpts()
    conf([], project="test", default_config_files=[], default_config_dirs=[])
    query = f"client={client}&session_timeout=6&topic_partitions=1"
    made = get_notification_transport(conf, f"{kafka_cluster.url}/?{query}")
    conf.set_override("requeue_delay", 0.1, group="listener")
    conf.set_override("max_attempts", 2, group="listener")
    yield made
    made.cleanup()


@pytest.fixture
def pool() -> str:
    return f"pool-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def run(kafka_cluster: Any, client: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command and return its rows."""

    def call(*argv: str) -> Any:
        capsys.readouterr()
        url = f"{kafka_cluster.url}?client={client}&topic_partitions=1"
        code = main.main(("-q", "--transport-url", url, *argv, "--json"))
        captured = capsys.readouterr()
        assert (code, captured.err) == (0, "")
        return json.loads(captured.out)

    return call


def listen(bus: NotificationTransport, topic: str, endpoint: Endpoint, pool: str) -> Listener:
    return get_notification_listener(bus, [Target(topic=topic)], [endpoint], pool=pool, allow_requeue=True)


def send(bus: NotificationTransport, topic: str, *numbers: int) -> None:
    sender = Notifier(bus, "host1", "messagingv2", topics=[topic]).prepare(wait=True)
    sender.send_many({}, "info", [("event", number) for number in numbers])


def held(bus: NotificationTransport, topic: str) -> list[Delivery]:
    return [delivery for span in bus.driver.spans([topic]) for delivery in bus.driver.read(span)]


@pytest.mark.long_with("kafka-python")
def test_dead_letters_are_counted_shown_and_given_back(
    bus: NotificationTransport, run: Run, topic: str, pool: str
) -> None:
    endpoint = Endpoint(lambda number: 1 // number)
    send(bus, topic, 0, 1)
    with listen(bus, topic, endpoint, pool) as each:
        until(lambda: each.stats()["dead_lettered"], "the dead letter")
    (row,) = run("dead-letters", "list", pool)
    assert (row["reason"], row["letters"]) == ("endpoint raised ZeroDivisionError in attempt 2", 1)
    (letter,) = run("dead-letters", "show", pool)
    assert (letter["origin"], letter["attempts"]) == (f"{topic}.info 0:0", 2)
    assert letter["notification"]["payload"] == 0
    given = run("dead-letters", "requeue", pool, "--all", "--execute")
    assert given == [{"topic": f"{pool}.requeue.{topic}.info", "letters": 1}]
    assert run("dead-letters", "requeue", pool, "--all", "--execute") == []
    endpoint.answer = lambda number: None
    with listen(bus, topic, endpoint, pool):
        until(lambda: endpoint.handled == [1, 0], "the one that was given back")


def test_replay_keeps_bytes_keys_and_headers(
    bus: NotificationTransport, run: Run, topic: str, pool: str
) -> None:
    send(bus, topic, *range(50))
    (row,) = run("replay", f"{topic}.info", f"{topic}-again.info")
    assert row["records"] == 50
    before, after = held(bus, f"{topic}.info"), held(bus, f"{topic}-again.info")
    assert [d.record._replace(topic="") for d in after] == [d.record._replace(topic="") for d in before]


def test_a_pool_is_moved_its_lag_told_and_a_replay_touches_none(
    bus: NotificationTransport, topic: str, pool: str
) -> None:
    only = Partition(f"{topic}.info", 0)
    send(bus, topic, *range(10))
    first = Endpoint()
    each = listen(bus, topic, first, pool)
    assert each.lag() == {only: 10}
    with each:
        until(lambda: len(first.handled) == 10, "all")
    assert each.lag() == {only: 0}
    again = Endpoint()
    each = listen(bus, topic, again, pool)
    each.start_from({only: 7})
    with each:
        until(lambda: again.handled == [7, 8, 9], "those behind the place")
    replayed = Endpoint()
    assert listen(bus, topic, replayed, "nobody").replay(since=4)["handled"] == 6
    assert replayed.handled == [4, 5, 6, 7, 8, 9]
    assert "nobody" not in bus.driver.admin().list_groups()


def test_a_place_on_a_topic_that_is_not_there_is_no_error(
    bus: NotificationTransport, topic: str, pool: str
) -> None:
    endpoint = Endpoint()
    each = listen(bus, topic, endpoint, pool)
    assert each.lag() == {}
    assert each.replay()["handled"] == 0
    each.start_from("earliest")
    with each:
        send(bus, topic, 1)
        until(lambda: endpoint.handled, "the first")


def test_own_positions_count_ahead_of_and_behind_the_groups(
    bus: NotificationTransport, topic: str, pool: str
) -> None:
    only = Partition(f"{topic}.info", 0)
    send(bus, topic, *range(10))
    ahead = Endpoint()
    each = listen(bus, topic, ahead, pool)
    each.resume_from({only: 6}.get)
    with each:
        until(lambda: ahead.handled == [6, 7, 8, 9], "those behind the position")
        until(lambda: each.lag() == {only: 0}, "the commit")
    behind = Endpoint()
    each = listen(bus, topic, behind, pool)
    each.resume_from({only: 8}.get)
    with each:
        send(bus, topic, 10)
        until(lambda: behind.handled == [8, 9, 10], "those behind the position, again")


@pytest.mark.long_with("kafka-python")
def test_one_that_waits_holds_up_no_other(bus: NotificationTransport, topic: str, pool: str) -> None:
    """With a wait of its own for each: the one that failed has a longer one."""
    bus.conf.set_override("requeue_delay", 60.0, group="listener")
    send(bus, topic, 1)
    patient = Endpoint(lambda number: NotificationResult.REQUEUE)
    with listen(bus, topic, patient, pool) as each:
        until(lambda: each.stats()["requeued"], "the one that waits")
    bus.conf.set_override("requeue_delay", 0.1, group="listener")
    hasty = Endpoint(lambda number: NotificationResult.REQUEUE if not hasty.handled else None)
    with listen(bus, topic, hasty, pool):
        send(bus, topic, 2)
        until(lambda: hasty.handled == [2, 2], "the hasty one")


def test_workers_commit_what_they_finished(bus: NotificationTransport, topic: str, pool: str) -> None:
    bus.conf.set_override("workers", 4, group="listener")
    endpoint = Endpoint()
    with contextlib.ExitStack() as stack:
        each = stack.enter_context(listen(bus, topic, endpoint, pool))
        for number in range(200):
            Notifier(bus, f"host{number % 7}", "messagingv2", topics=[topic]).info({}, "e", number)
        until(lambda: len(endpoint.handled) == 200, "all")
        until(lambda: not any(each.lag().values()), "the commit")
    for host in range(7):
        mine = [number for number in endpoint.handled if number % 7 == host]
        assert mine == sorted(mine)
