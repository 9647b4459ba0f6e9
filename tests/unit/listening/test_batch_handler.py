"""When the endpoints are called for a batch, and what is durable by then."""

import logging
import threading
from typing import Any

import pytest

from notifier_kafka.contract.driver import Partition
from notifier_kafka.listening.batch_handler import BatchHandler, InOrderBatchHandler
from notifier_kafka.listening.call_modes import CallMode, OneByOne, WholeBatch
from notifier_kafka.listening.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.listening.failure_log import FailureLog
from notifier_kafka.listening.requeue import Requeue, RetryRules
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.stats.counters import Counters
from tests.shared.listening_kit import Batches, Recorder, records, send

ONLY = Partition("notifications.info", 0)
LETTERS = "pool.dead-letters"
RULES = RetryRules(allow_requeue=True, max_attempts=1)


class Parts:
    """What a handler is made of, with notifications 0 to 4 on one partition."""

    def __init__(self, bus: NotificationTransport) -> None:
        bus.driver.admin().create_topic(ONLY.topic, 1)
        send(bus, range(5))
        self.deliveries = records(bus, ONLY.topic)
        self.requeue = Requeue(bus.driver, "pool", [ONLY.topic], 0.0)
        self.failures = FailureLog(self.requeue, RULES.max_attempts)

    def handler(self, kind: type[BatchHandler], mode: CallMode) -> BatchHandler:
        return kind(mode, self.requeue, RULES, Counters(logging.getLogger(__name__)))


@pytest.fixture
def parts(notifier_transport: NotificationTransport) -> Any:
    made = Parts(notifier_transport)
    yield made
    made.requeue.close()


@pytest.mark.parametrize("kind", [BatchHandler, InOrderBatchHandler])
def test_an_endpoint_is_called_when_all_before_is_complete(
    parts: Parts, notifier_transport: NotificationTransport, kind: type[BatchHandler]
) -> None:
    """A handler may store ``positions()`` with its data: nothing before may be lost then."""
    found: list[tuple[int, dict[Partition, int], int]] = []

    def answer(payload: int) -> None:
        found.append((payload, handler.positions(), len(records(notifier_transport, LETTERS))))
        if payload == 2:
            raise ValueError

    dispatcher = Dispatcher([Recorder(answer)], None)
    handler = parts.handler(kind, OneByOne(dispatcher, parts.failures))
    outcome = handler.handle(parts.deliveries, threading.Event())
    in_order = kind is InOrderBatchHandler
    letters = [0, 0, 0, 1, 1] if in_order else [0] * 5
    assert found == [(number, {ONLY: number + 1}, letters[number]) for number in range(5)]
    assert outcome.positions == {ONLY: 5}
    assert len(outcome.unstored) == (0 if in_order else 1)
    assert handler.positions() == {}


class Unheard(BaseException):
    pass


@pytest.mark.parametrize("whole", [False, True])
def test_after_an_error_nothing_is_being_handled(parts: Parts, whole: bool) -> None:
    found: list[dict[Partition, int]] = []

    def answer(_payload: Any) -> None:
        found.append(handler.positions())
        raise Unheard

    mode = (
        WholeBatch(BatchDispatcher([Batches(answer)], None), parts.failures)
        if whole
        else OneByOne(Dispatcher([Recorder(answer)], None), parts.failures)
    )
    handler = parts.handler(BatchHandler, mode)
    with pytest.raises(Unheard):
        handler.handle(parts.deliveries, threading.Event())
    assert found == [{ONLY: 5 if whole else 1}]
    assert handler.positions() == {}


def test_one_that_was_not_begun_holds_back_the_position(parts: Parts) -> None:
    stopping = threading.Event()
    endpoint = Recorder(lambda payload: stopping.set() if payload == 2 else None)
    handler = parts.handler(BatchHandler, OneByOne(Dispatcher([endpoint], None), parts.failures))
    assert handler.handle(parts.deliveries, stopping) == ({ONLY: 3}, [])
    assert endpoint.seen == [0, 1, 2]
    assert handler.handle(parts.deliveries, stopping) == ({}, [])
