"""What the log says of endpoints that raise: enough to find the notification and its dead letter."""

import logging
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.listening import listener
from notifier_kafka.publishing import transport
from notifier_kafka.wire import codec
from notifier_kafka.wire.serializer import NoOpSerializer
from tests.shared.listening_kit import TARGETS, Batches, Recorder, listen, records, send, wait_for

TOPIC = "notifications.info"
LOGGER = "notifier_kafka.listening.failure_log"


@pytest.fixture
def bus(quick: cfg.ConfigOpts) -> Any:
    """A transport whose topic has one partition; two attempts."""
    quick.set_override("max_attempts", 2, group="listener")
    made = transport.get_notification_transport(quick)
    made.driver.admin().create_topic(TOPIC, 1)
    yield made
    made.cleanup()


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Return the lines, and whether a traceback follows."""
    found = [record for record in caplog.records if record.name == LOGGER]
    assert {record.levelno for record in found} <= {logging.ERROR}
    return [(record.getMessage(), bool(record.exc_info)) for record in found]


def ids(bus: transport.NotificationTransport) -> list[str | None]:
    return [codec.decode(delivery.record).message_id for delivery in records(bus, TOPIC)]


def line(error: str, event_type: str, message_id: str | None, offset: int, rest: str) -> str:
    return (
        f"An endpoint raised {error}: event type {event_type}, message id {message_id}, "
        f"topic {TOPIC} partition 0 offset {offset}, group pool, {rest}"
    )


AGAIN = "attempt 1 (failure 1 of 2); it is tried again"
LAST = "attempt 2 (failure 2 of 2); it becomes a dead letter on pool.dead-letters"


@pytest.mark.parametrize(("workers", "in_place"), [(1, False), (1, True), (2, False)])
def test_each_failure_says_what_failed_where_and_what_becomes_of_it(
    bus: Any, quick: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture, workers: int, in_place: bool
) -> None:
    quick.set_override("workers", workers, group="listener")
    send(bus, [1, 0], "order.paid")
    each = listen(bus, Recorder(lambda payload: 1 / payload and None))
    if in_place:
        each.resume_from(lambda _partition: None)
    with each:
        wait_for(lambda: each.stats()["dead_lettered"], "the dead letter")
    message_id = ids(bus)[1]
    assert lines(caplog) == [
        (line("ZeroDivisionError", "order.paid", message_id, 1, rest), True) for rest in (AGAIN, LAST)
    ]


def test_a_refusal_counts_as_an_attempt_but_not_as_a_failure(
    bus: Any, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter(["requeue"])

    def answer(_payload: Any) -> Any:
        for refusal in answers:
            return refusal
        raise KeyError("total")

    send(bus, [1])
    with listen(bus, Recorder(answer), allow_requeue=True) as each:
        wait_for(lambda: each.stats()["dead_lettered"], "the dead letter")
    assert [text.partition("attempt ")[2] for text, _ in lines(caplog)] == [
        "2 (failure 1 of 2); it is tried again",
        "3 (failure 2 of 2); it becomes a dead letter on pool.dead-letters",
    ]


def test_a_failed_list_is_logged_once_and_each_of_its_dead_letters(
    bus: Any, caplog: pytest.LogCaptureFixture
) -> None:
    send(bus, range(3))

    def fail(_payloads: Any) -> None:
        raise ValueError("not now")

    each = listener.get_batch_notification_listener(bus, TARGETS, [Batches(fail)], pool="pool", batch_size=3)
    with each:
        wait_for(lambda: each.stats()["dead_lettered"] == 3, "the dead letters")
    names = ids(bus)
    others = "(failure 1 of 2), and 2 more of its list; it is tried again"
    (first, traced), *last = lines(caplog)
    assert (first, traced) == (line("ValueError", "e", names[0], 0, f"attempt 1 {others}"), True)
    assert {text.partition(" (failure")[0] for text, _ in last} == {
        line("ValueError", "e", name, offset, "attempt 2") for offset, name in enumerate(names)
    }
    assert all(text.endswith("it becomes a dead letter on pool.dead-letters") for text, _ in last)


def test_what_a_publisher_wrote_cannot_forge_a_line(bus: Any, caplog: pytest.LogCaptureFixture) -> None:
    send(bus, [0], "order\nCRITICAL all is lost")
    with listen(bus, Recorder(lambda payload: 1 / payload and None)) as each:
        wait_for(lambda: each.stats()["dead_lettered"], "the dead letter")
    for text, _ in lines(caplog):
        assert text.splitlines() == [text]
        assert r"event type 'order\nCRITICAL all is lost', " in text


def test_a_replay_logs_failures_too(bus: Any, caplog: pytest.LogCaptureFixture) -> None:
    send(bus, [1, 0], "order.paid")
    each = listen(bus, Recorder(lambda payload: 1 / payload and None))
    assert each.replay() == {"handled": 1, "refused": 1, "malformed": 0}
    (record,) = [one for one in caplog.records if one.name == "notifier_kafka.listening.replay"]
    assert record.getMessage() == (
        "An endpoint raised ZeroDivisionError during a replay: "
        f"event type 'order.paid', message id '{ids(bus)[1]}'"
    )
    assert record.exc_info


def test_a_replay_logs_the_failure_of_a_list_once(bus: Any, caplog: pytest.LogCaptureFixture) -> None:
    class RefusesOdd(NoOpSerializer):
        def deserialize_entity(self, _context: Any, entity: Any) -> Any:
            if entity % 2:
                raise ValueError(entity)
            return entity

    def fail(_payloads: Any) -> None:
        raise KeyError("not now")

    send(bus, range(6))
    each = listener.get_batch_notification_listener(
        bus, TARGETS, [Batches(fail)], serializer=RefusesOdd(), pool="pool", batch_size=6
    )
    assert each.replay() == {"handled": 0, "refused": 6, "malformed": 0}
    found = [one for one in caplog.records if one.name == "notifier_kafka.listening.replay"]
    assert [one.getMessage().split()[3] for one in found] == ["KeyError", *["ValueError"] * 3]
