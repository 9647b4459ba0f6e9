"""A loaded driver with the policy that all drivers share: overflow, accounting, exit."""

import atexit
import logging
import threading
import time

from oslo_config import cfg

from notifier_kafka import options, plugins
from notifier_kafka.accounts import Accounts
from notifier_kafka.driver import Driver, Limits, OnSettled, Publisher, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull
from notifier_kafka.receipts import Waiter
from notifier_kafka.url import TransportURL

LOG = logging.getLogger(__name__)

NAMESPACE = "notifier_kafka.drivers"
ROOM_CHECK = 0.001  # seconds between looks for room in a full outbox


def get_notification_transport(
    conf: cfg.ConfigOpts,
    url: str | TransportURL | None = None,
    allowed_remote_exmods: object = None,  # noqa: ARG001 - RPC's; the signature is oslo.messaging's
) -> "NotificationTransport":
    """Load the driver that ``url``, or else the configuration, names. Does no I/O on it."""
    options.register(conf)
    parsed = url if isinstance(url, TransportURL) else TransportURL.parse(conf, url)
    with options.blame(conf, "transport_url", given=url or None):
        driver_class: type[Driver] = plugins.load(NAMESPACE, str(parsed.transport))
    return NotificationTransport(driver_class(parsed))


class NotificationTransport:
    """Publishes records for notifiers and lends its driver to listeners."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.url = driver.url
        self.conf = driver.url.conf
        self.accounts = Accounts(LOG)
        self._settings = options.notifications(self.conf)
        self._publishers: dict[int, Publisher] = {}
        self._opening = threading.Lock()
        self._stalled = False
        self._closed = False
        self._said_silent = False

    def warn_silent(self) -> None:
        """Say once that notifications go nowhere: an easy mistake, and legal."""
        if not self._said_silent:
            self._said_silent = True
            LOG.warning("No [notifications] driver is configured: notifications are not sent")

    def publish(self, record: Record, retry: int, waiter: Waiter | None = None) -> None:
        """Hand a record to the driver; what happens when there is no room is the policy's.

        ``waiter`` learns the record's fate, and its owner an overflow, as an exception.
        """
        publisher = self._publishers.get(retry) or self._open(retry)
        on_settled = None
        if waiter is not None:
            waiter.expect()
            on_settled = waiter.settle
        try:
            publisher.offer(record, on_settled)
        except DeliveryFailed as refused:
            self._refused(publisher, record, on_settled, refused)
        else:
            if self._stalled:
                self._stalled = False

    def flush(self, timeout: float | None = None) -> int:
        """Wait until what was accepted is settled; return how many records are not."""
        deadline = None if timeout is None else time.monotonic() + timeout
        left = 0
        for publisher in list(self._publishers.values()):
            patience = 1e9 if deadline is None else max(0.0, deadline - time.monotonic())
            left += publisher.flush(min(patience, threading.TIMEOUT_MAX))
        return left

    def cleanup(self) -> None:
        """Flush within ``[notifications] exit_timeout`` and release everything."""
        self._closed = True
        atexit.unregister(self.cleanup)
        left = self.flush(self._settings.exit_timeout)
        if left:
            LOG.error("%d notifications were not delivered within exit_timeout and are given up", left)
        for publisher in self._publishers.values():
            publisher.close()
        self._publishers.clear()
        self.accounts.report()
        self.driver.close()

    def _open(self, retry: int) -> Publisher:
        with self._opening:
            if self._closed:
                raise DeliveryFailed("the transport was cleaned up; get a new one to publish")
            if retry not in self._publishers:
                limits = Limits(self._settings.outbox_records, self._settings.outbox_bytes, retry)
                self._publishers[retry] = self.driver.publisher(self._on_failure, limits)
                # Without this a short program would exit with its notifications still in memory.
                if len(self._publishers) == 1:
                    _flush_at_exit(self)
            return self._publishers[retry]

    def _on_failure(self, record: Record, error: MessagingException) -> None:
        self.accounts.lose(type(error).__name__, f"topic {record.topic}: {error}")

    def _refused(
        self, publisher: Publisher, record: Record, on_settled: OnSettled | None, why: DeliveryFailed
    ) -> None:
        if isinstance(why, OutboxFull):
            try:
                if self._found_room(publisher, record, on_settled):
                    return
            except DeliveryFailed as later:
                why = later
        if on_settled is not None:
            on_settled(why)
        elif isinstance(why, OutboxFull) and self._settings.on_full != "raise":
            self.accounts.lose("OutboxFull", str(why))
        else:
            raise why

    def _found_room(self, publisher: Publisher, record: Record, on_settled: OnSettled | None) -> bool:
        # A call waits only if the last one that waited found room: a log that is gone costs
        # its publishers one wait, not one for each call.
        if self._settings.on_full != "block" or self._stalled:
            return False
        deadline = time.monotonic() + self._settings.block_timeout
        while time.monotonic() < deadline:
            time.sleep(ROOM_CHECK)
            try:
                publisher.offer(record, on_settled)
            except OutboxFull:
                continue
            return True
        self._stalled = True
        return False


def _flush_at_exit(transport: NotificationTransport) -> None:
    """Flush when this process ends, before the driver's own exit handlers close its files.

    Exit handlers run last in, first out, so this is to be called after the driver was
    loaded. A child of multiprocessing runs none of them but those of multiprocessing.
    """
    import multiprocessing.util  # here, because few programs need it sooner

    atexit.register(transport.cleanup)
    multiprocessing.util.register_after_fork(transport, _flush_at_exit)
    if multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, transport.cleanup, exitpriority=10)
