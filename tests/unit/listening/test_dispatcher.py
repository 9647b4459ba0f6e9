"""What endpoints get and what their answers mean."""

import functools
from collections.abc import Iterable
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.listening import dispatcher, filters
from notifier_kafka.notification import Notification, NotificationResult
from notifier_kafka.wire import codec, serializer


def make(priority: str = "INFO", event_type: str = "thing.done", payload: Any = None) -> Notification:
    return Notification("id-1", "host1", event_type, priority, payload, "2026-11-18 07:50:58", {"user": "me"})


class Recorder:
    """An endpoint with a method for info and error."""

    def __init__(self, answer: Any = None) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self._answer = answer

    def info(self, *message: Any) -> Any:
        self.seen.append(message)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    error = info


class Picky(Recorder):
    filter_rule = filters.NotificationFilter(event_type=r"^wanted\.")


def results(verdicts: Iterable[dispatcher.Verdict]) -> list[str]:
    return [verdict.result for verdict in verdicts]


def test_an_endpoint_gets_the_five_arguments_of_oslo_messaging() -> None:
    endpoint = Recorder()
    verdicts = dispatcher.Dispatcher([endpoint], None).dispatch([make(payload={"a": 1})])
    assert results(verdicts) == [NotificationResult.HANDLED]
    assert endpoint.seen == [
        (
            {"user": "me"},
            "host1",
            "thing.done",
            {"a": 1},
            {"message_id": "id-1", "timestamp": "2026-11-18 07:50:58"},
        )
    ]


def test_supported_priorities_are_those_with_a_method() -> None:
    class Sampler:
        def sample(self, *message: Any) -> None: ...

    made = dispatcher.Dispatcher([Recorder(), Sampler()], None)
    assert sorted(made.supported_priorities) == ["error", "info", "sample"]


def test_the_priority_of_the_notification_decides_whatever_its_case() -> None:
    endpoint = Recorder()
    made = dispatcher.Dispatcher([endpoint], None)
    sent = [codec.decode(Record("t", b'{"priority": "%b"}' % spelled)) for spelled in (b"Error", b"audit")]
    verdicts = made.dispatch(sent)
    assert results(verdicts) == ["handled", "handled"]
    assert len(endpoint.seen) == 1


def test_the_first_endpoint_that_refuses_ends_the_round() -> None:
    first, second, third = Recorder(), Recorder(NotificationResult.REQUEUE), Recorder()
    verdicts = dispatcher.Dispatcher([first, second, third], None).dispatch([make()])
    assert results(verdicts) == ["requeue"]
    assert [len(endpoint.seen) for endpoint in (first, second, third)] == [1, 1, 0]


def test_an_endpoint_that_raises_refuses() -> None:
    boom = ZeroDivisionError("boom")
    (verdict,) = dispatcher.Dispatcher([Recorder(boom)], None).dispatch([make()])
    assert verdict == dispatcher.Verdict("requeue", boom)


def test_a_filter_keeps_notifications_from_its_endpoint_only() -> None:
    picky, other = Picky(), Recorder()
    verdicts = dispatcher.Dispatcher([picky, other], None).dispatch([make(event_type="wanted.x"), make()])
    assert results(verdicts) == ["handled", "handled"]
    assert [len(endpoint.seen) for endpoint in (picky, other)] == [1, 2]


class Shouting(serializer.NoOpSerializer):
    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        return f"{ctxt['user']}: {entity.upper()}"

    def deserialize_context(self, ctxt: Any) -> Any:
        return {"user": ctxt["user"].upper()}


def test_notifications_are_deserialized_before_filters_and_endpoints() -> None:
    endpoint = Recorder()
    verdicts = dispatcher.Dispatcher([endpoint], Shouting()).dispatch([make(payload="hello")])
    assert results(verdicts) == ["handled"]
    assert endpoint.seen[0][0] == {"user": "ME"}
    assert endpoint.seen[0][3] == "ME: HELLO"


@pytest.mark.parametrize("kind", [dispatcher.Dispatcher, dispatcher.BatchDispatcher])
def test_a_serializer_that_raises_refuses_only_its_notification(kind: type[dispatcher.Dispatcher]) -> None:
    verdicts = kind([Recorder()], Shouting()).dispatch([make(payload="good"), make(payload=7)])
    assert results(verdicts) == ["handled", "requeue"]


def test_a_batch_endpoint_gets_a_list_for_each_priority() -> None:
    endpoint = Recorder()
    sent = [make("INFO", payload=1), make("ERROR", payload=2), make("INFO", payload=3)]
    dispatcher.BatchDispatcher([endpoint], None).dispatch(sent)
    assert [[message["payload"] for message in seen[0]] for seen in endpoint.seen] == [[2], [1, 3]]
    assert set(endpoint.seen[0][0][0]) == {"ctxt", "publisher_id", "event_type", "payload", "metadata"}


def test_a_refused_list_refuses_its_priority_and_no_other() -> None:
    class RefusesErrors(Recorder):
        def error(self, *message: Any) -> Any:
            return NotificationResult.REQUEUE

    sent = [make("INFO"), make("ERROR"), make("INFO"), make("ERROR")]
    verdicts = dispatcher.BatchDispatcher([RefusesErrors()], None).dispatch(sent)
    assert results(verdicts) == ["handled", "requeue", "handled", "requeue"]


def test_a_batch_endpoint_is_not_called_when_its_filter_passes_nothing() -> None:
    endpoint = Picky()
    verdicts = dispatcher.BatchDispatcher([endpoint], None).dispatch([make()])
    assert results(verdicts) == ["handled"]
    assert endpoint.seen == []


def test_a_list_counts_as_delivered_only_when_complete() -> None:
    """The position that a handler stores must not pass a notification that it did not get."""
    undelivered: list[frozenset[str]] = []

    class Watching:
        def info(self, messages: list[dict[str, Any]]) -> None:
            undelivered.append(made.undelivered_priorities)

        error = info

    made = dispatcher.BatchDispatcher([Watching()], Shouting())
    made.dispatch([make(payload="good"), make(payload=7), make("ERROR", payload="good")])
    assert undelivered == [{"INFO"}, {"INFO"}]
    made.dispatch([make(payload="good"), make("ERROR", payload="good")])
    assert undelivered[2:] == [{"INFO"}, set()]


def test_a_coroutine_behind_a_decorator_is_awaited() -> None:
    seen: list[object] = []

    def traced(method: Any) -> Any:
        @functools.wraps(method)
        def traced_method(*arguments: Any) -> Any:
            return method(*arguments)

        return traced_method

    class Endpoint:
        @traced
        async def info(self, *_message: Any) -> str:
            seen.append(1)
            return NotificationResult.REQUEUE

    for kind in (dispatcher.Dispatcher, dispatcher.BatchDispatcher):
        made = kind([Endpoint()], None)
        assert results(made.dispatch([make()])) == [NotificationResult.REQUEUE]
        made.close()
    assert seen == [1, 1]
