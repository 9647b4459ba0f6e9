"""The listening face: poll, decode, dispatch, settle, commit; in this order, for ever.

The delivery guarantee can be read in ``Listener._settle``: a position is committed only
after the endpoints returned and what they refused is durable elsewhere.
"""

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence

from notifier_kafka import options, requeue, topics
from notifier_kafka.accounts import Accounts
from notifier_kafka.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.driver import Delivery, Start, Subscription
from notifier_kafka.errors import (
    ExecutorLoadFailure,
    InvalidTarget,
    MessagingException,
    MessagingTimeout,
    ServerListenError,
)
from notifier_kafka.lane import Lane
from notifier_kafka.serializer import Serializer
from notifier_kafka.settlement import Settlement
from notifier_kafka.target import Target
from notifier_kafka.transport import NotificationTransport

LOG = logging.getLogger(__name__)

IDLE_POLL = 0.2  # seconds; bounds how late a stop or a requeued notification is noticed
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between tries while the log is unavailable
EXIT_WAIT = 5.0  # seconds that the interpreter's exit waits for what is being handled


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
        self._failure: BaseException | None = None

    def start(self, override_pool_size: int | None = None) -> None:  # noqa: ARG002 - oslo.messaging's
        """Begin to listen. Raises ``ServerListenError`` when that can never work."""
        if self._thread is not None and self._stopping.is_set():
            self.wait()
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
        driver, delay = self.transport.driver, self._settings.requeue_delay
        self._requeue = requeue.Requeue(driver, self._group, names, delay)
        try:
            self._main = Lane(self._subscribe(names, self._settings.start))
            self._returns = Lane(self._subscribe(self._requeue.topics, "earliest"))
        except MessagingException as error:
            raise ServerListenError(", ".join(names), error) from error
        self._thread = threading.Thread(target=self._run, name=f"listener-{self._group}", daemon=True)
        self._thread.start()
        # What is finished when the interpreter ends is committed, and the group need not
        # miss this member first. Registered here: before the driver's own exit handlers.
        atexit.register(self._end)

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
            atexit.unregister(self._end)
        if self._failure is not None:
            why = str(self._failure) or type(self._failure).__name__
            raise ServerListenError(self._group, why) from self._failure

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

    def _subscribe(self, names: list[str], start: Start) -> Subscription:
        return self.transport.driver.subscribe(names, self._group, start)

    def _end(self) -> None:
        self.stop()
        with contextlib.suppress(MessagingException):
            self.wait(EXIT_WAIT)

    def _run(self) -> None:
        try:
            self._listen()
        except BaseException as error:  # noqa: BLE001 - a thread that ends unheard is the worst end
            # Logged although wait() raises it as well: a service may never come to call wait().
            LOG.critical("The listener of group %s ended: %r", self._group, error)
            self._failure = error
        for part in (self._main, self._returns, self._requeue):
            try:
                part.close()
            except MessagingException as error:
                LOG.warning("A member of group %s leaves without good-bye: %s", self._group, error)

    def _listen(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                self._settle(self._main, self._fetch())
                self._settle(self._returns, self._returns.poll_due(self._limit, self._requeue.is_due))
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

    def _fetch(self) -> list[Delivery]:
        """Get what there is, up to a batch; with a batch_timeout wait for more."""
        deliveries = self._main.poll(self._limit, IDLE_POLL)
        deadline = time.monotonic() + self._fill
        while deliveries and len(deliveries) < self._limit and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                deliveries += self._main.poll(self._limit - len(deliveries), min(left, IDLE_POLL))
            except MessagingException:
                # What came before is to be handled whatever ails the log; the next poll tells.
                break
        return deliveries

    def _settle(self, lane: Lane, deliveries: Sequence[Delivery]) -> None:
        """Handle deliveries, make durable what comes back or is set aside, then commit."""
        if not deliveries:
            return
        try:
            positions, moved = self._settlement.settle(deliveries, self._requeue, self._stopping)
            stored = not moved or self._requeue.store(moved, self._stopping)
        except MessagingException:
            lane.take_back(deliveries)
            raise
        if stored:
            lane.commit(positions)


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
    if executor == "eventlet":
        LOG.warning("There is no executor eventlet here; threads, which eventlet may patch, do the work")
    elif executor not in (None, "threading"):
        raise ExecutorLoadFailure(executor, "only 'threading' exists here")
