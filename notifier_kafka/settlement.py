"""From deliveries to what may be committed: decode, dispatch, judge."""

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka import codec, requeue
from notifier_kafka.accounts import Accounts
from notifier_kafka.dispatcher import HANDLED, BatchDispatcher, Dispatcher, Verdict
from notifier_kafka.driver import Delivery, Partition, Record
from notifier_kafka.errors import DecodeError
from notifier_kafka.notification import Notification, NotificationResult

LOG = logging.getLogger(__name__)


class Settled(NamedTuple):
    """``positions`` may be committed once every record of ``moved`` is durable."""

    positions: dict[Partition, int]
    moved: list[Record]


class Settlement:
    """Settles deliveries: each is handled, comes back later or is set aside."""

    def __init__(
        self, dispatcher: Dispatcher, accounts: Accounts, *, allow_requeue: bool, max_attempts: int
    ) -> None:
        self._dispatcher = dispatcher
        self._accounts = accounts
        self._allow_requeue = allow_requeue
        self._max_attempts = max_attempts
        # One by one, a stop is obeyed between any two notifications; a batch is one piece.
        self._whole = isinstance(dispatcher, BatchDispatcher)

    def settle(
        self, deliveries: Sequence[Delivery], returns: requeue.Requeue, stopping: threading.Event
    ) -> Settled:
        """Let the endpoints handle deliveries, in order, until told to stop."""
        settled = Settled({}, [])
        if stopping.is_set():
            return settled
        decoded = [_decode(delivery) for delivery in deliveries]
        verdicts = iter(self._dispatcher.dispatch([n for n in decoded if isinstance(n, Notification)]))
        handled = 0
        for delivery, found in zip(deliveries, decoded, strict=True):
            if not self._whole and stopping.is_set():
                break
            if isinstance(found, DecodeError):
                settled.moved.append(self._set_aside(delivery, found, returns))
            elif (verdict := next(verdicts)) is HANDLED:
                handled += 1
            elif record := self._judge(delivery, verdict, returns):
                settled.moved.append(record)
            settled.positions[delivery.partition] = delivery.offset + 1
        self._accounts.add("handled", handled)
        return settled

    def _set_aside(self, delivery: Delivery, error: DecodeError, returns: requeue.Requeue) -> Record:
        self._accounts.add("malformed")
        topic, number = delivery.partition
        LOG.warning(
            "Malformed record set aside: topic %s partition %d offset %d: %s",
            topic,
            number,
            delivery.offset,
            error,
        )
        return returns.aside(delivery, str(error))

    def _judge(self, delivery: Delivery, verdict: Verdict, returns: requeue.Requeue) -> Record | None:
        if verdict.result != NotificationResult.REQUEUE:
            self._accounts.add("handled")
            return None
        if verdict.error is None and not self._allow_requeue:
            # As in oslo.messaging: who did not ask for requeueing has it acknowledged.
            self._accounts.add("refused")
            return None
        attempt = requeue.attempts(delivery.record) + 1
        if verdict.error is not None and attempt >= self._max_attempts:
            self._accounts.add("dead_lettered")
            reason = f"endpoint raised {type(verdict.error).__name__} in attempt {attempt}"
            return returns.aside(delivery, reason)
        self._accounts.add("requeued")
        return returns.again(delivery)


def _decode(delivery: Delivery) -> Notification | DecodeError:
    try:
        return codec.decode(delivery.record)
    except DecodeError as error:
        return error
