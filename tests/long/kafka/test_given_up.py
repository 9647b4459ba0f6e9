"""A rebalance that ends between two steps of a call ends nothing of ours.

kafka-python changes its assignment on a thread of its own. Here that comes just behind one of its
answers, where no other member could be made to bring it about.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from notifier_kafka.contract.driver import Partition, Record
from notifier_kafka_drivers.kafka.clients.protocol import AssignedRecord
from tests.shared.kafka.kafka_rig import Connect, gather, publish, until

PARTITIONS = 4


@pytest.fixture
def client() -> str:
    return "kafka-python"


@pytest.fixture
def member(connect: Connect, topic: str) -> Any:
    """One that has all partitions, with a record read from each."""
    driver = connect()
    driver.admin().create_topic(topic, PARTITIONS)
    publish(driver, *placed(topic, b"first"))
    made = driver.subscribe([topic], topic, "earliest")
    gather(made, PARTITIONS)
    return made


def placed(topic: str, value: bytes) -> list[Record]:
    """Make a record for each partition."""
    made = [AssignedRecord(topic, value) for _ in range(PARTITIONS)]
    for number, each in enumerate(made):
        each.number = number
    return list(made)


def give_up_behind(library: Any, question: str) -> Any:
    """Have the library take one partition from us as soon as it has answered; return which."""
    state = library._subscription
    gone, *rest = sorted(library.assignment())
    ask = getattr(state, question)

    def asked(*arguments: Any) -> Any:
        answer = ask(*arguments)
        if not arguments or arguments == (gone,):
            setattr(state, question, ask)
            # As its coordinator does when a join has ended.
            state.assign_from_subscribed(rest)
        return answer

    setattr(state, question, asked)
    return gone


def hold(ours: Any, library: Any) -> None:
    give_up_behind(library, "assigned_partitions")
    ours.pause()
    assert library.paused() == library.assignment()


def proceed(ours: Any, library: Any) -> None:
    ours.pause()
    give_up_behind(library, "assigned_partitions")
    ours.resume()
    assert library.paused() == set()


def begin(ours: Any, library: Any) -> None:
    ours.on_partitions_assigned(library.assignment())
    state = library._subscription
    resume = state.resume

    def resumed(partition: Any) -> None:
        resume(partition)
        state.assign_from_subscribed([partition])

    state.resume = resumed
    ours.poll(1, 0.0)
    assert library.paused() == set()


def seek(ours: Any, library: Any) -> None:
    ours.seek(Partition(*give_up_behind(library, "assigned_partitions")), 0)


def seek_later(ours: Any, library: Any) -> None:
    gone, *rest = sorted(library.assignment())
    library._subscription.assign_from_subscribed(rest)
    ours.seek(Partition(*gone), 0)


@pytest.mark.parametrize("call", [hold, proceed, begin, seek, seek_later])
def test_a_call_about_it_leaves_it_out(member: Any, call: Callable[[Any, Any], None]) -> None:
    library = member._consumer._consumer
    call(member._consumer, library)
    assert 0 < len(library.assignment()) < PARTITIONS


def test_a_poll_brings_what_came_of_the_others(member: Any, connect: Connect, topic: str) -> None:
    gone = give_up_behind(member._consumer._consumer, "is_fetchable")
    publish(connect(), *placed(topic, b"second"))
    found = gather(member, PARTITIONS - 1)
    others = [Partition(topic, number) for number in range(PARTITIONS) if number != gone.partition]
    assert sorted((each.partition, each.record.value) for each in found) == [(p, b"second") for p in others]


def test_who_keeps_a_place_for_a_listener_at_work_goes_on(
    connect: Connect, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = connect(poll_interval=6.0, session_timeout=6.0)
    publish(driver, Record(topic, b"1"))
    member: Any = driver.subscribe([topic], topic, "earliest")
    gather(member, 1)
    library, polled = member._consumer._consumer, threading.Event()
    assignment, poll, errors = library.assignment, library.poll, [MemoryError("for a moment")]

    def asked() -> Any:
        if errors and threading.current_thread() is member._busy_poller:
            raise errors.pop()
        return assignment()

    def poll_and_tell(*arguments: Any, **named: Any) -> Any:
        if threading.current_thread() is member._busy_poller:
            polled.set()
        return poll(*arguments, **named)

    library.assignment, library.poll = asked, poll_and_tell
    until(polled.is_set, "a poll in the user's place", 20.0)
    assert errors == []
    (said,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "MemoryError: for a moment" in caplog.text
    assert said.getMessage() == "A client raised an error that it should have translated"
