"""From deliveries to what may be committed: decode, call the endpoints, requeue or set aside the rest."""

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

from notifier_kafka.contract.driver import Delivery, Partition, Record
from notifier_kafka.errors import DecodeError
from notifier_kafka.listening.call_modes import CallMode, Decoded
from notifier_kafka.listening.dispatcher import HANDLED, UNFINISHED, Verdict
from notifier_kafka.listening.recent_ids import DUPLICATE, RecentIds, Skipped
from notifier_kafka.listening.requeue import Requeue, RetryRules
from notifier_kafka.notification import Notification, NotificationResult
from notifier_kafka.stats.counters import Counters
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)

ALREADY_STORED = Skipped()
"""Stands for a malformed record that is a dead letter already."""


class Outcome(NamedTuple):
    """``positions`` may be committed once every record of ``unstored`` is durable."""

    positions: dict[Partition, int]
    unstored: list[Record]


class BatchHandler:
    """Handles deliveries: each is handled, requeued for later, or becomes a dead letter."""

    def __init__(
        self,
        mode: CallMode,
        requeue: Requeue,
        rules: RetryRules,
        counters: Counters,
        recent_ids: RecentIds | None = None,
    ) -> None:
        self._mode = mode
        self._requeue = requeue
        self._rules = rules
        self._counters = counters
        self._recent_ids = recent_ids

    def start(self) -> None:
        self._mode.start()

    def close(self) -> None:
        self._mode.close()

    def handle(self, deliveries: Sequence[Delivery], stopping: threading.Event) -> Outcome:
        """Let the endpoints handle deliveries, in order, until told to stop."""
        outcome = Outcome({}, [])
        if stopping.is_set():
            return outcome
        decoded = self._decode(deliveries)
        if not self._store_malformed_first(deliveries, decoded, stopping):
            return outcome
        try:
            self._mode.begin(deliveries, decoded, stopping)
            handled = self._handle_in_order(deliveries, decoded, outcome, stopping)
        finally:
            self._mode.end()
        self._counters.add("handled", len(handled))
        if self._recent_ids is not None:
            self._recent_ids.remember(handled)
        return outcome

    def positions(self) -> dict[Partition, int]:
        """Return the offsets behind what an endpoint is handling now; empty if none or not known."""
        return self._mode.positions()

    def _handle_in_order(
        self,
        deliveries: Sequence[Delivery],
        decoded: Sequence[Decoded],
        outcome: Outcome,
        stopping: threading.Event,
    ) -> list[Decoded]:
        """Complete ``outcome``; return what the endpoints handled.

        One delivery is completed before the verdict of the next is asked for: in the modes that
        handle one by one, that call is what handles it.
        """
        verdict_of = self._mode.verdict
        handled: list[Decoded] = []
        blocked: set[Partition] = set()
        for delivery, one in zip(deliveries, decoded, strict=True):
            verdict = verdict_of(delivery, one) if isinstance(one, Notification) else None
            if verdict is UNFINISHED or (blocked and delivery.partition in blocked):
                # A position cannot leave out one that is unfinished: what is behind it comes again.
                blocked.add(delivery.partition)
                continue
            if verdict is HANDLED:
                handled.append(one)
            elif (record := self._record_to_store(delivery, one, verdict)) and not self._store(
                record, outcome, stopping
            ):
                blocked.add(delivery.partition)
                continue
            outcome.positions[delivery.partition] = delivery.offset + 1
        return handled

    def _store_malformed_first(
        self,
        deliveries: Sequence[Delivery],  # noqa: ARG002 - not here: they are stored with the others
        decoded: list[Decoded],  # noqa: ARG002
        stopping: threading.Event,  # noqa: ARG002
    ) -> bool:
        """Store malformed records before endpoints are called, if that is needed; False when told to stop."""
        return True

    def _store(self, record: Record, outcome: Outcome, stopping: threading.Event) -> bool:  # noqa: ARG002
        """Store a record now, or with the others of the batch; False when told to stop."""
        outcome.unstored.append(record)
        return True

    def _decode(self, deliveries: Sequence[Delivery]) -> list[Decoded]:
        decoded: list[Decoded] = [_decode(delivery) for delivery in deliveries]
        return decoded if self._recent_ids is None else self._recent_ids.mark_duplicates(decoded)

    def _record_to_store(self, delivery: Delivery, one: Decoded, verdict: Verdict | None) -> Record | None:
        """Make the record that requeues a delivery or sets it aside; None if it is settled as it is."""
        if isinstance(one, DecodeError):
            return self._set_aside(delivery, one)
        if verdict is None:
            if one is DUPLICATE:
                self._counters.add("duplicates")
            return None
        return self._refused(delivery, verdict)

    def _set_aside(self, delivery: Delivery, error: DecodeError) -> Record:
        self._counters.add("malformed")
        topic, number = delivery.partition
        LOG.warning(
            "Malformed record set aside: topic %s partition %d offset %d: %s",
            topic,
            number,
            delivery.offset,
            error,
        )
        return self._requeue.dead_letter(delivery, str(error))

    def _refused(self, delivery: Delivery, verdict: Verdict) -> Record | None:
        if verdict.result != NotificationResult.REQUEUE:
            self._counters.add("handled")
            return None
        if verdict.error is None and not self._rules.allow_requeue:
            # As oslo.messaging does: without allow_requeue a refusal is acknowledged.
            self._counters.add("refused")
            return None
        failure = self._requeue.failures(delivery) + verdict.failures + 1
        if verdict.error is not None and failure >= self._rules.max_attempts:
            self._counters.add("dead_lettered")
            attempt = self._requeue.attempts(delivery) + verdict.retries + 1
            reason = f"endpoint raised {type(verdict.error).__name__} in attempt {attempt}"
            return self._requeue.dead_letter(delivery, reason, attempt)
        self._counters.add("requeued")
        return self._requeue.again(delivery, failed=verdict.error is not None)


class InOrderBatchHandler(BatchHandler):
    """Stores what one delivery became before the endpoints get the next.

    For handlers that store their own position: one that lies behind a malformed or a poison
    message must never be stored before the dead letter is durable.
    """

    def _store_malformed_first(
        self, deliveries: Sequence[Delivery], decoded: list[Decoded], stopping: threading.Event
    ) -> bool:
        records = []
        for index, one in enumerate(decoded):
            if isinstance(one, DecodeError):
                records.append(self._set_aside(deliveries[index], one))
                decoded[index] = ALREADY_STORED
        return not records or self._requeue.store(records, stopping)

    def _store(self, record: Record, outcome: Outcome, stopping: threading.Event) -> bool:  # noqa: ARG002
        return self._requeue.store([record], stopping)


def _decode(delivery: Delivery) -> Notification | DecodeError:
    try:
        return codec.decode(delivery.record)
    except DecodeError as error:
        return error
