"""The listening face. What it does all the time is in ``notifier_kafka.listening.loop``."""

import atexit
import contextlib
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Sequence

from notifier_kafka.config import options
from notifier_kafka.config.options import ListenerPolicy
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import (
    ConfigurationError,
    ExecutorLoadFailure,
    InvalidTarget,
    MessagingException,
    ServerListenError,
    TaskTimeout,
)
from notifier_kafka.listening import replay, requeue, start_from
from notifier_kafka.listening.batch_handler import Settlement, Terms
from notifier_kafka.listening.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.listening.loop import Loop, Policy
from notifier_kafka.listening.recent_ids import Window
from notifier_kafka.listening.resuming_subscription import PositionOf, ResumingLane
from notifier_kafka.listening.start_from import Place
from notifier_kafka.listening.tracked_subscription import Lane, WaitingLane
from notifier_kafka.listening.workers import Crew
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.stats.counters import Counters
from notifier_kafka.target import Target
from notifier_kafka.wire import topic_names
from notifier_kafka.wire.serializer import Serializer

LOG = logging.getLogger(__name__)

BEAT = 0.5  # seconds
EXIT_WAIT = 5.0  # seconds that the interpreter's exit waits for what is being handled
COUNTS = ("handled", "requeued", "refused", "dead_lettered", "malformed", "duplicates")


class Listener:
    """Listens on targets and gives what arrives to a dispatcher, on one thread or several."""

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
        policy: ListenerPolicy | None = None,
    ) -> None:
        for target in targets:
            if not target.topic:
                raise InvalidTarget("a target to listen on needs a topic", target)
        self.transport = transport
        self.targets = list(targets)
        self.counters = Counters(LOG)
        self._settings = options.listener(transport.conf, policy)
        self._dispatcher = dispatcher
        self._group = pool or self._settings.group or transport.driver.default_group or _program(transport)
        once = self._settings.delivery == "at-most-once"
        size = self._settings.dedupe_window
        terms = Terms(
            allow_requeue=allow_requeue and not once,
            max_attempts=1 if once else self._settings.max_attempts,
            window=Window(size) if size else None,
        )
        self._settlement = Settlement(dispatcher, self.counters, terms)
        self._policy = Policy(batch_size or self._settings.batch_size, batch_timeout or 0.0, once)
        self._stopping = threading.Event()
        self._place: Place | None = None
        self._position_of: PositionOf | None = None
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        _be_a_service()

    def start(
        self,
        override_pool_size: int | None = None,  # noqa: ARG002 - oslo.messaging's, as all of them
        *,
        timeout: float | None = None,
        log_after: float | None = None,  # noqa: ARG002
    ) -> None:
        """Begin to listen. Raises ``ServerListenError`` when that can never work.

        After a ``stop``, or when it ended by itself, it waits for the end first, ``timeout``
        seconds at most.
        """
        if self._thread is not None and (
            self._stopping.is_set() or self._failure is not None or not self._thread.is_alive()
        ):
            self._join(timeout)
        if self._thread is not None:
            LOG.warning("The listener was started already; nothing was done")
            return
        names = self._names()
        self._stopping.clear()
        self._failure = None
        try:
            loop = self._loop = self._make_loop(names)
        except MessagingException as error:
            raise ServerListenError(", ".join(names), error) from error
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name=f"listener-{self._group}", daemon=True
        )
        self._thread.start()
        # What is finished when the interpreter ends is committed, and the group need not
        # miss this member first. Registered here: before the driver's own exit handlers.
        atexit.register(self._end)

    def stop(self, *, timeout: float | None = None, log_after: float | None = None) -> None:  # noqa: ARG002
        """Handle nothing new. What is being handled is finished; ``wait`` waits for that.

        It returns at once, whatever time it is given.
        """
        self._stopping.set()

    def wait(self, timeout: float | None = None, log_after: float | None = None) -> None:  # noqa: ARG002
        """Wait until the listener was stopped and has left its group.

        Raises ``TaskTimeout`` after ``timeout``, and the error that ended it, if one did.
        """
        self._join(timeout)
        if self._failure is not None:
            why = str(self._failure) or type(self._failure).__name__
            raise ServerListenError(self._group, why) from self._failure

    def reset(self) -> None:
        """Do nothing: services call it on SIGHUP, and no state here outlives a poll."""

    def start_from(self, place: Place) -> None:
        """Let the next start move the group first, which must have no other members then.

        To "earliest", "latest", a time as seconds since the epoch (a float), an offset (an
        int), or a mapping from (topic, number) of partitions to offsets.
        """
        self._place = place

    def resume_from(self, position_of: PositionOf) -> None:
        """Let the handler's own positions count, which it stores with its data.

        ``position_of`` is asked for the position of each partition that begins or is back;
        None leaves it at the group's. See ``positions`` for what to store. What an endpoint
        raises over, or refuses, is tried again in place, so that nothing overtakes it.
        """
        if self._settings.workers > 1 or self._policy.at_most_once:
            raise ConfigurationError("resume_from() needs workers = 1 and delivery = at-least-once")
        self._position_of = position_of
        self._settlement.in_place = True

    def positions(self) -> dict[Partition, int]:
        """Return, in an endpoint, the offsets behind what it is handling, by partition.

        Elsewhere, or with several workers, those up to which everything is settled.
        """
        return {} if self._loop is None else self._loop.positions()

    def replay(self, since: Place = "earliest", until: float | None = None) -> dict[str, int]:
        """Give the endpoints what the topics hold from ``since`` on, in the calling thread.

        ``since`` is as for ``start_from``, ``until`` a time. No group is touched and nothing
        comes back. Returns how many were handled, refused (or raised over) and malformed.
        """
        driver = self.transport.driver
        chosen = replay.spans(driver, self._names(), since, until)
        try:
            counts = replay.replay(driver, chosen, self._dispatcher, self._policy.limit)
        finally:
            if self._thread is None:
                self._dispatcher.close()
        return dict.fromkeys(("handled", "refused", "malformed"), 0) | counts

    def lag(self) -> dict[Partition, int]:
        """Ask the log how many records wait for the group, by partition."""
        return start_from.lag(self.transport.driver, self._group, self._names())

    def stats(self) -> dict[str, int]:
        """Count what became of what arrived, since the listener was made."""
        return dict.fromkeys(COUNTS, 0) | self.counters.counts()

    def __enter__(self) -> "Listener":
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self.wait()

    def _names(self) -> list[str]:
        host = self.transport.driver.virtual_host
        priorities = self._dispatcher.supported_priorities
        return sorted(
            {topic_names.bus_topic(str(t.topic), p, host) for t in self.targets for p in priorities}
        )

    def _make_loop(self, names: list[str]) -> Loop:
        driver, settings = self.transport.driver, self._settings
        returns = requeue.Requeue(
            driver, self._group, names, settings.requeue_delay, settings.requeue_delay_max
        )
        if self._place is not None:
            found = start_from.positions(driver, driver.spans(names), self._place)
            if found:
                driver.admin().reset_group(self._group, found)
            self._place = None
        subscription = driver.subscribe(names, self._group, settings.start)
        main = (
            Lane(subscription) if self._position_of is None else ResumingLane(subscription, self._position_of)
        )
        waiting = WaitingLane(driver.subscribe(returns.topics, self._group, "earliest"))
        return Loop((main, waiting), returns, self._settlement, self._policy, self._stopping)

    def _join(self, timeout: float | None) -> None:
        # Once: who else waits, be it a signal handler in the middle of this, may be the first to see the end.
        thread = self._thread
        if thread is None:
            return
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        # Bit by bit: Python sees a signal that another thread took, or that came as the wait began,
        # only when the wait is over, and it may be the one that is to end it.
        while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
            thread.join(min(left, BEAT))
        if thread.is_alive():
            raise TaskTimeout(f"the listener did not end within {timeout:g} s")
        if self._thread is thread:
            self._thread = None
            atexit.unregister(self._end)

    def _end(self) -> None:
        self.stop()
        with contextlib.suppress(MessagingException):
            self.wait(EXIT_WAIT)

    def _run(self, loop: Loop) -> None:
        workers, name = self._settings.workers, f"listener-{self._group}"
        crew = (
            Crew(self._dispatcher, workers, ordered=self._settings.ordered, name=name)
            if workers > 1
            else None
        )
        self._settlement.crew = crew
        try:
            loop.run()
        except BaseException as error:  # noqa: BLE001 - a thread that ends unheard is the worst end
            self._failure = error
            # Logged although wait() raises it as well: a service may never come to call wait().
            LOG.critical("The listener of group %s ended: %r", self._group, error)
        if crew is not None:
            crew.close()
        self._dispatcher.close()
        for problem in loop.close():
            LOG.warning("A member of group %s leaves without good-bye: %s", self._group, problem)


def _be_a_service() -> None:
    """Let the launchers of oslo.service take a listener: they ask whether it is one of their services."""
    # Not imported: that would choose one of its backends for the program, which may not even use it.
    base = getattr(sys.modules.get("oslo_service.service"), "ServiceBase", None)
    if base is not None:
        base.register(Listener)


def _program(transport: NotificationTransport) -> str:
    """Name the program, so that every member of a service joins the same group."""
    # A configuration that was never called has neither name.
    names = [getattr(transport.conf, each, None) for each in ("project", "prog")]
    return names[0] or names[1] or os.path.splitext(os.path.basename(sys.argv[0]))[0] or "python"


def get_notification_listener(  # noqa: PLR0913, PLR0917 - the signature is oslo.messaging's
    transport: NotificationTransport,
    targets: Sequence[Target],
    endpoints: Sequence[object],
    executor: str | None = "threading",
    serializer: Serializer | None = None,
    allow_requeue: bool = False,  # noqa: FBT001, FBT002
    pool: str | None = None,
    *,
    policy: ListenerPolicy | None = None,
) -> Listener:
    """Make a listener whose endpoints get notifications one by one.

    ``policy`` has values for options of ``[listener]`` that are this listener's own.
    """
    _check_executor(executor)
    dispatcher = Dispatcher(endpoints, serializer)
    return Listener(transport, targets, dispatcher, allow_requeue=allow_requeue, pool=pool, policy=policy)


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
    *,
    policy: ListenerPolicy | None = None,
) -> Listener:
    """Make a listener whose endpoints get lists of notifications.

    A list is given over when it has ``batch_size`` notifications or ``batch_timeout``
    seconds after its first came; without a timeout as soon as there is any. ``policy`` is
    as for the other.
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
        policy=policy,
    )


def _check_executor(executor: str | None) -> None:
    if executor == "eventlet":
        LOG.warning("There is no executor eventlet here; threads, which eventlet may patch, do the work")
    elif executor not in (None, "threading"):
        raise ExecutorLoadFailure(executor, "only 'threading' exists here")
