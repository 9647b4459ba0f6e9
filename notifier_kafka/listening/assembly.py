"""Builds the loop of a listener: which subscriptions it has, and which way it calls the endpoints."""

import threading
from typing import NamedTuple

from notifier_kafka.config.settings import ListenerSettings
from notifier_kafka.contract.driver import Driver
from notifier_kafka.listening import start_from
from notifier_kafka.listening.batch_handler import BatchHandler, InOrderBatchHandler
from notifier_kafka.listening.call_modes import ByWorkers, CallMode, OneByOne, OneByOneInPlace, WholeBatch
from notifier_kafka.listening.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.listening.failure_log import FailureLog
from notifier_kafka.listening.loop import Loop, LoopPolicy
from notifier_kafka.listening.recent_ids import RecentIds
from notifier_kafka.listening.requeue import Requeue, RetryRules
from notifier_kafka.listening.start_from import StartFrom
from notifier_kafka.listening.tracked_subscription import (
    DelayedSubscription,
    ResumingSubscription,
    StoredPosition,
    TrackedSubscription,
)
from notifier_kafka.listening.workers import BatchWorkerPool, WorkerPool
from notifier_kafka.stats.counters import Counters


class Parts(NamedTuple):
    """What a listener keeps from one start to the next."""

    driver: Driver
    group: str
    settings: ListenerSettings
    dispatcher: Dispatcher
    counters: Counters
    rules: RetryRules
    policy: LoopPolicy
    recent_ids: RecentIds | None


def move_group(driver: Driver, group: str, topics: list[str], start: StartFrom) -> None:
    """Move the group's positions in the topics to ``start``."""
    positions = start_from.resolve(driver, driver.spans(topics), start)
    if positions:
        driver.admin().reset_group(group, positions)


def make_loop(
    parts: Parts, topics: list[str], stored_position: StoredPosition | None, stopping: threading.Event
) -> Loop:
    """Subscribe to the topics and their requeue topics."""
    driver, group, settings = parts.driver, parts.group, parts.settings
    requeue = Requeue(driver, group, topics, settings.requeue_delay, settings.requeue_delay_max)
    subscription = driver.subscribe(topics, group, settings.start)
    tracked = (
        TrackedSubscription(subscription)
        if stored_position is None
        else ResumingSubscription(subscription, stored_position)
    )
    requeued = DelayedSubscription(driver.subscribe(requeue.topics, group, "earliest"))
    handler = _make_handler(parts, requeue, in_place=stored_position is not None)
    return Loop((tracked, requeued), requeue, handler, parts.policy, stopping)


def _make_handler(parts: Parts, requeue: Requeue, *, in_place: bool) -> BatchHandler:
    mode = _make_mode(parts, requeue, in_place=in_place)
    kind = InOrderBatchHandler if in_place else BatchHandler
    return kind(mode, requeue, parts.rules, parts.counters, parts.recent_ids)


def _make_mode(parts: Parts, requeue: Requeue, *, in_place: bool) -> CallMode:
    dispatcher = parts.dispatcher
    failures = FailureLog(requeue, parts.rules.max_attempts)
    if parts.settings.workers > 1:
        return ByWorkers(_make_workers(parts, failures))
    if isinstance(dispatcher, BatchDispatcher):
        return WholeBatch(dispatcher, failures)
    if in_place:
        return OneByOneInPlace(dispatcher, failures, requeue, parts.rules, parts.counters)
    return OneByOne(dispatcher, failures)


def _make_workers(parts: Parts, failures: FailureLog) -> WorkerPool:
    kind = BatchWorkerPool if isinstance(parts.dispatcher, BatchDispatcher) else WorkerPool
    workers, ordered = parts.settings.workers, parts.settings.ordered
    return kind(parts.dispatcher, failures, workers, ordered=ordered, name=f"listener-{parts.group}")
