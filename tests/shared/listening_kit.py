"""Helpers of the tests of listeners, over a real SQLite log."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from notifier_kafka.contract.driver import Delivery, Partition, Receipt, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.listening import listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.target import Target

TARGETS = [Target(topic="notifications")]
TIMEOUT_SECONDS = 30.0


def wait_for(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {TIMEOUT_SECONDS} s waiting for {what}"
        time.sleep(0.01)


class Recorder:
    """An endpoint that records payloads and gives the answers that it was made with."""

    def __init__(self, answer: Callable[[Any], Any] = lambda payload: None) -> None:
        self.seen: list[Any] = []
        self._answer = answer

    def info(self, _ctxt: Any, _publisher: Any, _event: Any, payload: Any, _metadata: Any) -> Any:
        self.seen.append(payload)
        return self._answer(payload)


class Batches(Recorder):
    def info(self, messages: list[dict[str, Any]]) -> Any:  # type: ignore[override]
        self.seen.append([message["payload"] for message in messages])
        return self._answer(self.seen[-1])


def refuse_once(refused: Any) -> Callable[[Any], Any]:
    """Make an answer: REQUEUE for the first ``refused``, and None for all others."""
    times = iter([NotificationResult.REQUEUE])
    return lambda payload: next(times, None) if payload == refused else None


def listen(
    bus: transport.NotificationTransport, endpoint: object, pool: str = "pool", **options: Any
) -> listener.Listener:
    return listener.get_notification_listener(bus, TARGETS, [endpoint], pool=pool, **options)


def send(bus: transport.NotificationTransport, payloads: Sequence[Any], event_type: str = "e") -> None:
    sender = notifier.Notifier(bus, "host1").prepare(wait=True)
    sender.send_many({}, "info", [(event_type, payload) for payload in payloads])


def put(bus: transport.NotificationTransport, *values: bytes | None) -> None:
    """Publish raw values on the topic, as another program might."""
    settled: list[Receipt | MessagingException] = []
    publisher = bus._open(-1)
    for value in values:
        publisher.offer(Record("notifications.info", value, b"host1"), settled.append)
    assert publisher.flush(TIMEOUT_SECONDS) == 0
    assert all(isinstance(fate, Receipt) for fate in settled)


def records(bus: transport.NotificationTransport, topic: str) -> list[Delivery]:
    return [delivery for span in bus.driver.spans([topic]) for delivery in bus.driver.read(span)]


def counted(each: listener.Listener) -> dict[str, int]:
    """Return the counts that are not zero."""
    return {name: count for name, count in each.stats().items() if count}


def committed(bus: transport.NotificationTransport, pool: str = "pool") -> dict[Partition, int]:
    return dict(bus.driver.admin().describe_group(pool).positions)
