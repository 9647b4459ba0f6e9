"""The listener that users start and stop. What its thread does is in ``notifier_kafka.listening.loop``."""

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
from notifier_kafka.contract import threads
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import (
    ConfigurationError,
    ExecutorLoadFailure,
    InvalidTarget,
    MessagingException,
    ServerListenError,
    TaskTimeout,
)
from notifier_kafka.listening import assembly, replay, start_from
from notifier_kafka.listening.dispatcher import BatchDispatcher, Dispatcher
from notifier_kafka.listening.loop import Loop, LoopPolicy
from notifier_kafka.listening.recent_ids import RecentIds
from notifier_kafka.listening.requeue import RetryRules
from notifier_kafka.listening.start_from import StartFrom
from notifier_kafka.listening.tracked_subscription import StoredPosition
from notifier_kafka.publishing.transport import NotificationTransport
from notifier_kafka.stats.counters import Counters
from notifier_kafka.target import Target
from notifier_kafka.wire import topic_names
from notifier_kafka.wire.serializer import Serializer

LOG = logging.getLogger(__name__)

SIGNAL_CHECK_SECONDS = 0.5
EXIT_TIMEOUT_SECONDS = 5.0  # how long the interpreter's exit waits for endpoints
NO_RETRIES = RetryRules(allow_requeue=False, max_attempts=1)
COUNTS = ("handled", "requeued", "refused", "dead_lettered", "malformed", "duplicates")


class Listener:
    """Listens on targets and gives the notifications to endpoints, on one thread or several."""

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
        self._group = (
            pool or self._settings.group or transport.driver.default_group or _program_name(transport)
        )
        at_most_once = self._settings.delivery == "at-most-once"
        size = self._settings.dedupe_window
        self._parts = assembly.Parts(
            driver=transport.driver,
            group=self._group,
            settings=self._settings,
            dispatcher=dispatcher,
            counters=self.counters,
            rules=RetryRules(allow_requeue, self._settings.max_attempts) if not at_most_once else NO_RETRIES,
            policy=LoopPolicy(batch_size or self._settings.batch_size, batch_timeout or 0.0, at_most_once),
            recent_ids=RecentIds(size) if size else None,
        )
        self._stopping = threading.Event()
        self._start_from: StartFrom | None = None
        self._stored_position: StoredPosition | None = None
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        _register_as_service()

    def start(
        self,
        override_pool_size: int | None = None,  # noqa: ARG002 - oslo.messaging's, as all of them
        *,
        timeout: float | None = None,
        log_after: float | None = None,  # noqa: ARG002
    ) -> None:
        """Start to listen. Raises ``ServerListenError`` when that can never work.

        After a ``stop``, or an error that ended the listener, waits for its end first:
        ``timeout`` seconds at most.
        """
        if self._thread is not None and (
            self._stopping.is_set() or self._failure is not None or not self._thread.is_alive()
        ):
            self._join(timeout)
        if self._thread is not None:
            LOG.warning("The listener is started already; this call to start() changes nothing")
            return
        topics = self._topics()
        self._stopping.clear()
        self._failure = None
        try:
            if self._start_from is not None:
                assembly.move_group(self.transport.driver, self._group, topics, self._start_from)
                self._start_from = None
            self._loop = assembly.make_loop(self._parts, topics, self._stored_position, self._stopping)
            self._start_thread(self._loop)
        except MessagingException as error:
            raise ServerListenError(", ".join(topics), error) from error
        # At the interpreter's exit: commit what was handled and leave the group at once.
        # Registered here, so that it runs before the exit handlers of the driver.
        atexit.register(self._stop_at_exit)

    def stop(self, *, timeout: float | None = None, log_after: float | None = None) -> None:  # noqa: ARG002
        """Stop the listener after the notification or batch that it handles now; ``wait`` waits for that.

        Returns at once, whatever ``timeout`` is.
        """
        self._stopping.set()

    def wait(self, timeout: float | None = None, log_after: float | None = None) -> None:  # noqa: ARG002
        """Wait until the listener is stopped and has left its group.

        Raises ``TaskTimeout`` after ``timeout``, and ``ServerListenError`` if an error ended
        the listener.
        """
        self._join(timeout)
        if self._failure is not None:
            why = str(self._failure) or type(self._failure).__name__
            raise ServerListenError(self._group, why) from self._failure

    def reset(self) -> None:
        """Do nothing. Services call it on SIGHUP; a listener has no state to reset."""

    def start_from(self, start: StartFrom) -> None:
        """Let the next start move the group's positions first. The group must have no other members then.

        ``start`` is "earliest", "latest", a time in seconds since the epoch (a float), an
        offset (an int), or a mapping from (topic, number) of partitions to offsets.
        """
        self._start_from = start

    def resume_from(self, position_of: StoredPosition) -> None:
        """Go on from positions that the handler stores with its data, instead of the group's.

        ``position_of`` is asked for the position of each partition that is assigned to this
        listener; None means the group's. See ``positions`` for what to store. A notification
        that an endpoint refuses or raises for is tried again in place, so that none overtakes it.
        """
        if self._settings.workers > 1 or self._parts.policy.at_most_once:
            raise ConfigurationError("resume_from() needs workers = 1 and delivery = at-least-once")
        self._stored_position = position_of

    def positions(self) -> dict[Partition, int]:
        """Return, in an endpoint, the offsets behind what it is handling, by partition.

        Elsewhere, or with several workers, return the offsets behind all that is settled.
        """
        return {} if self._loop is None else self._loop.positions()

    def replay(self, since: StartFrom = "earliest", until: float | None = None) -> dict[str, int]:
        """Give the endpoints what the topics hold from ``since`` on, in the calling thread.

        ``since`` is as for ``start_from``, ``until`` a time. Nothing is committed and nothing is
        requeued. Returns how many were handled, how many refused (or an endpoint raised) and
        how many were malformed.
        """
        driver = self.transport.driver
        chosen = replay.spans(driver, self._topics(), since, until)
        try:
            counts = replay.replay(driver, chosen, self._dispatcher, self._parts.policy.batch_size)
        finally:
            if self._thread is None:
                self._dispatcher.close()
        return dict.fromkeys(("handled", "refused", "malformed"), 0) | counts

    def lag(self) -> dict[Partition, int]:
        """Return how many records are behind the group's positions, by partition. Asks the log."""
        return start_from.lag(self.transport.driver, self._group, self._topics())

    def stats(self) -> dict[str, int]:
        """Return what became of the notifications since the listener was made, as counts."""
        return dict.fromkeys(COUNTS, 0) | self.counters.counts()

    def __enter__(self) -> "Listener":
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self.wait()

    def _topics(self) -> list[str]:
        host = self.transport.driver.virtual_host
        priorities = self._dispatcher.supported_priorities
        return sorted(
            {topic_names.bus_topic(str(t.topic), p, host) for t in self.targets for p in priorities}
        )

    def _start_thread(self, loop: Loop) -> None:
        thread = threading.Thread(target=self._run, args=(loop,), name=f"listener-{self._group}", daemon=True)
        # Set before it starts: a signal handler may stop the listener in the middle of this, and wait.
        self._thread = thread
        try:
            threads.start(thread, "listen")
        except MessagingException:
            self._thread = None
            loop.close()
            raise

    def _join(self, timeout: float | None) -> None:
        # Read once: another thread that waits, or a signal handler in the middle of this, may
        # set it to None.
        thread = self._thread
        if thread is None:
            return
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        # In short steps: if another thread took a signal, or it came just before the wait, Python
        # runs its handler only after the wait, and that handler may be what stops the listener.
        while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
            thread.join(min(left, SIGNAL_CHECK_SECONDS))
        if thread.is_alive():
            raise TaskTimeout(f"the listener did not end within {timeout:g} s")
        if self._thread is thread:
            self._thread = None
            atexit.unregister(self._stop_at_exit)

    def _stop_at_exit(self) -> None:
        self.stop()
        with contextlib.suppress(MessagingException):
            self.wait(EXIT_TIMEOUT_SECONDS)

    def _run(self, loop: Loop) -> None:
        try:
            loop.run()
        except BaseException as error:  # noqa: BLE001 - a thread must not end without a word
            self._failure = error
            # Logged although wait() raises it as well: a service may never call wait().
            LOG.critical("The listener of group %s ended because of an error: %r", self._group, error)
        self._dispatcher.close()
        for problem in loop.close():
            LOG.warning(
                "The listener of group %s could not leave its group properly: %s", self._group, problem
            )


def _register_as_service() -> None:
    """Let the launchers of oslo.service take a listener: they take subclasses of ServiceBase only."""
    # Only if it is imported already: importing it would choose one of its backends for the program.
    base = getattr(sys.modules.get("oslo_service.service"), "ServiceBase", None)
    if base is not None:
        base.register(Listener)


def _program_name(transport: NotificationTransport) -> str:
    """Return the program's name: the default group, which all members of a service share."""
    # Both are absent if the program never called its configuration.
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

    ``policy`` sets options of ``[listener]`` for this listener alone.
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

    A list is handled when it has ``batch_size`` notifications, or ``batch_timeout`` seconds
    after the first arrived; without a timeout, as soon as there is one. ``policy`` sets options
    of ``[listener]`` for this listener alone.
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
        LOG.warning("The executor eventlet is not supported; threads are used, which eventlet may patch")
    elif executor not in (None, "threading"):
        raise ExecutorLoadFailure(executor, "only 'threading' is supported")
