"""The listening face: poll, decode, dispatch, settle, commit; in this order, for ever.

The delivery guarantee can be read in ``Listener._settle``: a position is committed only
after the endpoints returned and what they refused is durable elsewhere.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from notifier_kafka import options, requeue, topics
from notifier_kafka.accounts import Accounts
from notifier_kafka.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.driver import Delivery, Positions, Subscription
from notifier_kafka.errors import (
    CommitRefused,
    ExecutorLoadFailure,
    InvalidTarget,
    MessagingException,
    MessagingTimeout,
    ServerListenError,
)
from notifier_kafka.serializer import Serializer
from notifier_kafka.settlement import Settlement
from notifier_kafka.target import Target
from notifier_kafka.transport import NotificationTransport

LOG = logging.getLogger(__name__)

IDLE_POLL = 0.2  # seconds; bounds how late a stop or a requeued notification is noticed
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between tries while the log is unavailable


class Listener:
    """Listens on targets and gives what arrives to a dispatcher, on one thread."""

    def __init__(  # noqa: PLR0913 - one parameter for each of oslo.messaging's
        self,
        transport: NotificationTransport,
        targets: Sequence[Target],
        dispatcher: Dispatcher,
        *,
        allow_requeue: bool = False,
        pool: str | None = None,
        batch_size: int | None = None,
        batch_timeout: float | None = None,
    ) -> None:
        for target in targets:
            if not target.topic:
                raise InvalidTarget("a target to listen on needs a topic", target)
        self.transport = transport
        self.targets = list(targets)
        self.accounts = Accounts(LOG)
        self._settings = options.listener(transport.conf)
        self._dispatcher = dispatcher
        self._group = pool or self._settings.group or transport.driver.default_group or _program(transport)
        self._settlement = Settlement(
            dispatcher,
            self.accounts,
            allow_requeue=allow_requeue,
            max_attempts=self._settings.max_attempts,
        )
        self._limit: int = batch_size or self._settings.batch_size
        self._fill: float = batch_timeout or 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: MessagingException | None = None

    def start(self, override_pool_size: int | None = None) -> None:  # noqa: ARG002 - oslo.messaging's
        """Begin to listen. Raises ``ServerListenError`` when that can never work."""
        if self._thread is not None:
            LOG.warning("The listener was started already; nothing was done")
            return
        host = self.transport.driver.virtual_host
        names = sorted(
            {
                topics.bus_topic(str(target.topic), priority, host)
                for target in self.targets
                for priority in self._dispatcher.supported_priorities
            }
        )
        self._stopping.clear()
        self._failure = None
        self._requeue = requeue.Requeue(self.transport.driver, self._group, self._settings.requeue_delay)
        try:
            self._main = self._subscribe(names, self._settings.start)
            self._returns = self._subscribe([self._requeue.topic], "earliest")
        except MessagingException as error:
            raise ServerListenError(", ".join(names), error) from error
        self._held: list[Delivery] = []
        self._thread = threading.Thread(target=self._run, name=f"listener-{self._group}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Handle nothing new. What is being handled is finished; ``wait`` waits for that."""
        self._stopping.set()

    def wait(self, timeout: float | None = None, log_after: float | None = None) -> None:  # noqa: ARG002
        """Wait until the listener was stopped and has left its group.

        Raises ``MessagingTimeout`` after ``timeout``, and the error that ended it, if one did.
        """
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise MessagingTimeout(f"the listener did not end within {timeout:g} s")
            self._thread = None
        if self._failure is not None:
            raise ServerListenError(self._group, self._failure) from self._failure

    def reset(self) -> None:
        """Do nothing: services call it on SIGHUP, and no state here outlives a poll."""

    def stats(self) -> dict[str, int]:
        """Count what became of what arrived, since the listener was made."""
        none = dict.fromkeys(("handled", "requeued", "refused", "dead_lettered", "malformed"), 0)
        return none | self.accounts.counts()

    def __enter__(self) -> "Listener":
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self.wait()

    def _subscribe(self, names: list[str], start: Any) -> Subscription:
        return self.transport.driver.subscribe(names, self._group, start)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        try:
            while not self._stopping.is_set():
                try:
                    self._settle(self._main, self._fetch())
                    self._settle(self._returns, self._due())
                except MessagingException as error:
                    if not error.retriable:
                        raise
                    if pause == FIRST_PAUSE:
                        LOG.warning("The log is unavailable, listening goes on when it is back: %s", error)
                    self._stopping.wait(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                else:
                    if pause != FIRST_PAUSE:
                        LOG.warning("The log is back")
                        pause = FIRST_PAUSE
        except MessagingException as error:
            # Logged although wait() raises it as well: a service may never come to call wait().
            LOG.critical("The listener of group %s ended: %s", self._group, error)
            self._failure = error
        finally:
            for part in (self._main, self._returns, self._requeue):
                part.close()

    def _fetch(self) -> list[Delivery]:
        """Get what there is, up to a batch; with a batch_timeout wait for more."""
        deliveries = list(self._main.poll(self._limit, IDLE_POLL))
        deadline = time.monotonic() + self._fill
        while deliveries and len(deliveries) < self._limit and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            deliveries += self._main.poll(self._limit - len(deliveries), min(left, IDLE_POLL))
        return deliveries

    def _due(self) -> list[Delivery]:
        """Get what came back and has waited long enough; at most one batch is held."""
        if not self._held:
            self._held = list(self._returns.poll(self._limit, 0.0))
        ready = 0
        while ready < len(self._held) and self._requeue.is_due(self._held[ready].record):
            ready += 1
        due, self._held = self._held[:ready], self._held[ready:]
        return due

    def _settle(self, subscription: Subscription, deliveries: Sequence[Delivery]) -> None:
        """Handle deliveries, make durable what comes back or is set aside, then commit."""
        if not deliveries:
            return
        positions, moved = self._settlement.settle(deliveries, self._requeue, self._stopping)
        if not moved or self._requeue.store(moved, self._stopping):
            self._commit(subscription, positions)

    def _commit(self, subscription: Subscription, positions: Positions) -> None:
        if not positions:
            return
        try:
            subscription.commit(positions)
        except CommitRefused as refused:
            LOG.info("Partitions went to another member, which may repeat the last batch: %s", refused)
            kept = {p: offset for p, offset in positions.items() if p not in refused.partitions}
            if len(kept) < len(positions):
                self._commit(subscription, kept)


def _program(transport: NotificationTransport) -> str:
    """Name the program, so that every member of a service joins the same group."""
    conf = transport.conf
    return conf.project or conf.prog or os.path.splitext(os.path.basename(sys.argv[0]))[0] or "python"


def get_notification_listener(  # noqa: PLR0913, PLR0917 - the signature is oslo.messaging's
    transport: NotificationTransport,
    targets: Sequence[Target],
    endpoints: Sequence[object],
    executor: str | None = "threading",
    serializer: Serializer | None = None,
    allow_requeue: bool = False,  # noqa: FBT001, FBT002
    pool: str | None = None,
) -> Listener:
    """Make a listener whose endpoints get notifications one by one."""
    _check_executor(executor)
    dispatcher = Dispatcher(endpoints, serializer)
    return Listener(transport, targets, dispatcher, allow_requeue=allow_requeue, pool=pool)


def get_batch_notification_listener(  # noqa: PLR0913, PLR0917 - the signature is oslo.messaging's
    transport: NotificationTransport,
    targets: Sequence[Target],
    endpoints: Sequence[object],
    executor: str | None = "threading",
    serializer: Serializer | None = None,
    allow_requeue: bool = False,  # noqa: FBT001, FBT002
    pool: str | None = None,
    batch_size: int | None = None,
    batch_timeout: float | None = None,
) -> Listener:
    """Make a listener whose endpoints get lists of notifications.

    A list is given over when it has ``batch_size`` notifications or ``batch_timeout``
    seconds after its first came; without a timeout as soon as there is any.
    """
    _check_executor(executor)
    return Listener(
        transport,
        targets,
        BatchDispatcher(endpoints, serializer),
        allow_requeue=allow_requeue,
        pool=pool,
        batch_size=batch_size,
        batch_timeout=batch_timeout,
    )


def _check_executor(executor: str | None) -> None:
    if executor not in (None, "threading"):
        raise ExecutorLoadFailure(executor, "only 'threading' exists here")
