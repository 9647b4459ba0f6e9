"""A loaded driver with the policies that all drivers share: overflow, counting losses, exit."""

import atexit
import logging
import threading
import time

from oslo_config import cfg

from notifier_kafka.config import options
from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract import after_fork, plugins, threads
from notifier_kafka.contract import driver as driver_contract
from notifier_kafka.contract.driver import Driver, Limits, OnSettled, Publisher, Record
from notifier_kafka.errors import (
    ConfigurationError,
    DeliveryFailed,
    MessagingException,
    OutboxFull,
    TransportUnavailable,
)
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.publishing.drop_oldest import DropOldestPublisher
from notifier_kafka.publishing.lost_notifications import OnLoss, on_lost_record
from notifier_kafka.spool import spool
from notifier_kafka.spool.spool import Spool
from notifier_kafka.stats.counters import Counters
from notifier_kafka.stats.losses import Losses
from notifier_kafka.stats.publisher_stats import Stats

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

NAMESPACE = driver_contract.NAMESPACE
ROOM_CHECK_SECONDS = 0.001  # between two looks for room in a full outbox
CLOSING_SECONDS = 0.5  # for closing, when flushing took all of exit_timeout


def get_notification_transport(
    conf: cfg.ConfigOpts,
    url: str | TransportURL | None = None,
    allowed_remote_exmods: object = None,  # noqa: ARG001 - RPC's; the signature is oslo.messaging's
    *,
    on_failure: OnLoss | None = None,
) -> "NotificationTransport":
    """Load the driver that ``url`` names, or else the configuration. Does no I/O on the log.

    ``on_failure`` is called with each lost notification and the error, on the thread that
    notices the loss. This may be the thread that publishes.
    """
    options.register(conf)
    parsed = url if isinstance(url, TransportURL) else TransportURL.parse(conf, url)
    with options.blame(conf, "transport_url", given=url or None):
        driver: Driver = plugins.load(NAMESPACE, str(parsed.transport))(parsed)
    return NotificationTransport(driver, on_failure)


class NotificationTransport:
    """Publishes records for notifiers and lends its driver to listeners."""

    def __init__(self, driver: Driver, on_failure: OnLoss | None = None) -> None:
        self.driver = driver
        self.url = driver.url
        self.conf = driver.url.conf
        self.counters = Counters(LOG)
        self._losses = Losses(self.counters, on_failure and on_lost_record(on_failure))
        self._settings = options.notifications(self.conf)
        self._limits = Limits(self._settings.outbox_records, self._settings.outbox_bytes)
        self._on_full = self._settings.on_full or ("spool" if self._settings.spool_dir else "block")
        self._publishers: dict[int, Publisher] = {}
        self._driver_publishers: dict[int, Publisher] = {}
        self.start_afresh()
        self._spool: Spool | None = None
        self._accepted = 0
        self._stalled = False
        self._closed = False
        self._said_silent = False
        _FORKED.add(self)

    def start_afresh(self) -> None:
        """Make a new lock in a child process: a thread that is missing there may hold the parent's."""
        self._opening = threading.RLock()

    def warn_silent(self) -> None:
        """Warn once that notifications are not sent. This is allowed, but often a mistake."""
        if not self._said_silent:
            self._said_silent = True
            LOG.warning("No [notifications] driver is configured: notifications are not sent")

    def prepare(self, retry: int = -1) -> None:
        """Open the publisher for calls with this ``retry``, so that the first call is not slower.

        Does no I/O on the log. Raises ``ConfigurationError`` when an option is wrong or the spool
        cannot be used. Other errors are raised by the first call.
        """
        self._open_spool()
        try:
            self._open(retry)
        except ConfigurationError:
            raise
        except MessagingException as error:
            LOG.debug("No publisher yet: %s", error)

    def _open_spool(self) -> None:
        with self._opening:
            if self._on_full == "spool" and self._spool is None and not self._closed:
                self._spool = spool.opened(
                    self.conf, self._settings, lambda: self._driver_publisher(-1), self._losses
                )

    def publish(self, record: Record, retry: int, waiter: DeliveryWaiter | None = None) -> None:
        """Hand a record to the driver, or apply the policy of ``on_full`` when there is no room.

        A ``waiter`` gets the outcome of the record. An overflow is an outcome too.
        """
        publisher = self._publishers.get(retry) or self._open(retry)
        on_settled = None
        if waiter is not None:
            waiter.expect()
            on_settled = waiter.settle
        # Safe without a lock: Python switches threads at calls, and there is none inside this line.
        self._accepted += 1
        try:
            publisher.offer(record, on_settled)
        except DeliveryFailed as error:
            self._handle_refusal(publisher, record, on_settled, error)
        else:
            if self._stalled:
                self._stalled = False

    def flush(self, timeout: float | None = None) -> int:
        """Wait until all accepted records are settled; return how many are not.

        Records on the spool's disk count as settled.
        """
        seconds = min(1e9 if timeout is None else timeout, threading.TIMEOUT_MAX)
        if self._spool is not None:
            return self._spool.flush(seconds)
        deadline = time.monotonic() + seconds
        return sum(
            publisher.flush(max(0.0, deadline - time.monotonic()))
            for publisher in self._publishers.copy().values()
        )

    def stats(self) -> Stats:
        """Return the counts since the transport was made. May read the spool's files."""
        counts = self.counters.counts()
        return Stats(
            accepted=self._accepted,
            pending=self.flush(0.0),
            spooled=self._spool.spooled if self._spool else 0,
            forwarded=counts.get("forwarded", 0),
            waiting=self._spool.waiting() if self._spool else 0,
            lost=self.counters.lost(),
        )

    def cleanup(self) -> None:
        """Flush and release everything within ``[notifications] exit_timeout`` plus one second.

        What takes longer, because the log is unreachable, is left to a daemon thread.
        """
        self._closed = True
        atexit.unregister(self.cleanup)
        seconds = self._settings.exit_timeout
        deadline = time.monotonic() + seconds
        left = self._spool.close(seconds) if self._spool else self.flush(seconds)
        if left:
            LOG.error("%d notifications were not delivered within exit_timeout and are given up", left)
        closer = threading.Thread(target=self._release, name="notifier-kafka-closing", daemon=True)
        try:
            threads.start(closer, "close from")
        except MessagingException:
            # Since Python 3.12 there are no new threads at the interpreter's exit. With records
            # left the log is probably unreachable, and closing could block.
            if not left:
                self._release()
        else:
            closer.join(max(CLOSING_SECONDS, deadline - time.monotonic()))
        self.counters.report()

    def _release(self) -> None:
        for publisher in self._publishers.copy().values():
            publisher.close()
        self._publishers.clear()
        self.counters.report()
        try:
            self.driver.close()
        except TransportUnavailable as error:
            # Nothing of ours is left there, and an unreachable log must not keep a program from ending.
            LOG.warning("Closing: %s", error)

    def _open(self, retry: int) -> Publisher:
        with self._opening:
            if self._closed:
                raise DeliveryFailed("the transport was cleaned up; get a new one to publish")
            if retry not in self._publishers:
                self._open_spool()
                publisher = self._driver_publisher(retry)
                if self._spool is not None:
                    publisher = self._spool.publisher(publisher)
                # Without it a short program would exit with its notifications still in memory.
                if not self._publishers:
                    _flush_at_exit(self)
                self._publishers[retry] = publisher
            return self._publishers[retry]

    def _driver_publisher(self, retry: int) -> Publisher:
        """Return the publisher of the driver, or the one that drops the oldest in front of it."""
        with self._opening:
            if retry not in self._driver_publishers:
                limits = self._limits._replace(retry=retry)
                if self._on_full == "drop_oldest":
                    self._driver_publishers[retry] = DropOldestPublisher(self.driver, limits, self._losses)
                else:
                    self._driver_publishers[retry] = self.driver.publisher(self._losses.lose, limits)
            return self._driver_publishers[retry]

    def _handle_refusal(
        self, publisher: Publisher, record: Record, on_settled: OnSettled | None, error: DeliveryFailed
    ) -> None:
        if isinstance(error, OutboxFull):
            try:
                if self._wait_for_room(publisher, record, on_settled):
                    return
            except DeliveryFailed as later:
                error = later
        if on_settled is not None:
            on_settled(error)
        elif isinstance(error, OutboxFull) and self._on_full != "raise":
            self._losses.lose(record, error)
        else:
            self._accepted -= 1
            raise error

    def _wait_for_room(self, publisher: Publisher, record: Record, on_settled: OnSettled | None) -> bool:
        """Offer the record until it is taken; return False when ``block_timeout`` came first."""
        # A call waits only if the last wait found room: an unreachable log costs its
        # publishers one wait, not one for each call.
        if self._on_full not in ("block", "spool") or self._stalled:
            return False
        deadline = time.monotonic() + self._settings.block_timeout
        while time.monotonic() < deadline:
            time.sleep(ROOM_CHECK_SECONDS)
            try:
                publisher.offer(record, on_settled)
            except OutboxFull:
                continue
            return True
        self._stalled = True
        return False


def _flush_at_exit(transport: NotificationTransport) -> None:
    """Flush when this process ends, before the driver's own exit handlers close its files.

    Exit handlers run in reverse order, so call this after the driver was loaded. A child of
    multiprocessing runs only the exit handlers of multiprocessing.
    """
    import multiprocessing.util  # here, because few programs need it earlier

    atexit.register(transport.cleanup)
    multiprocessing.util.register_after_fork(transport, _flush_at_exit)
    if multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, transport.cleanup, exitpriority=10)
