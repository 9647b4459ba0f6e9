"""oslo.messaging's Notifier, with which a program publishes."""

import contextlib
import copy
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from notifier_kafka.config import options
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Receipt, Transaction
from notifier_kafka.errors import DeliveryFailed, MessagingException
from notifier_kafka.notification import PRIORITIES, Notification, make_notification
from notifier_kafka.publishing import message_ids, ordering_keys
from notifier_kafka.publishing.channels import channel
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport  # noqa: F401 - where oslo.messaging has it
from notifier_kafka.stats.publisher_stats import Stats
from notifier_kafka.wire.serializer import NoOpSerializer, Serializer

LOG = logging.getLogger(__name__)

KeySpec = str | Callable[[Notification], str | bytes | None] | None
Sent = list[Receipt] | None
"""The receipts of a notification, for a notifier prepared with ``wait=True``; else None."""


class _Unchanged:
    """The default of an argument that changes nothing when it is not given."""

    def __repr__(self) -> str:
        return "<unchanged>"


_UNCHANGED: Final[Any] = _Unchanged()


class Notifier:
    """Sends notifications through the channels that ``driver`` or the configuration name.

    The arguments are oslo.messaging's, and ``key``: the ordering key, as in the option of that
    name. A call returns before the notification is on the bus. ``flush`` waits for it, and so
    do the calls of a notifier made with ``prepare(wait=True)``.
    """

    def __init__(  # noqa: PLR0913 - the signature is oslo.messaging's
        self,
        transport: NotificationTransport,
        publisher_id: str | None = None,
        driver: str | None = None,
        serializer: Serializer | None = None,
        retry: int | None = None,
        topics: Sequence[str] | None = None,
        *,
        key: KeySpec = None,
    ) -> None:
        settings = options.notifications(transport.conf)
        self.transport = transport
        self.publisher_id = publisher_id
        self.retry: int = settings.retry if retry is None else retry
        with options.blame(transport.conf, "key", given=key):
            self._key = ordering_keys.load(settings.key if key is None else key)
        self._wait = False
        self._how = channel.Sending(self.retry, self._key)
        # By thread. Shared with all notifiers that are prepared from this one.
        self._transactions: dict[int, Transaction] = {}
        self._wait_timeout: float = settings.wait_timeout
        self._serializer = serializer or NoOpSerializer()
        # As in oslo.messaging, empty names are ignored and a name that is given twice counts once.
        names = [driver] if driver is not None else settings.driver
        self._driver_names = [name for name in dict.fromkeys(names) if name]
        self._channels = self._load_channels(list(settings.topics if topics is None else topics), driver)
        self._open()

    def _load_channels(self, topics: list[str], given: str | None) -> list[channel.Channel]:
        if not self._driver_names:
            self.transport.warn_silent()
        with options.blame(self.transport.conf, "driver", given=given):
            classes = [plugins.load(channel.NAMESPACE, name) for name in self._driver_names]
        return [make(self.transport.conf, topics, self.transport) for make in classes]

    def _open(self) -> None:
        if any(each.publishes for each in self._channels):
            self.transport.prepare(self.retry)

    def prepare(
        self,
        publisher_id: str | None = _UNCHANGED,
        retry: int | None = _UNCHANGED,
        *,
        wait: bool = _UNCHANGED,
    ) -> "Notifier":
        """Return a notifier with the given arguments changed; it shares everything else.

        With ``wait`` a call waits until its notification is durable and returns a ``Receipt``
        for each record, or raises ``MessageDeliveryFailure``.
        """
        special = copy.copy(self)
        if publisher_id is not _UNCHANGED:
            special.publisher_id = publisher_id
        if retry is not _UNCHANGED:
            special.retry = -1 if retry is None else retry
            special._how = special._how._replace(retry=special.retry)  # noqa: SLF001 - a copy of ourselves
            special._open()  # noqa: SLF001
        if wait is not _UNCHANGED:
            special._wait = wait  # noqa: SLF001
        return special

    def audit(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at audit level."""
        return self._notify(ctxt, event_type, payload, "AUDIT")

    def debug(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at debug level."""
        return self._notify(ctxt, event_type, payload, "DEBUG")

    def info(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at info level."""
        return self._notify(ctxt, event_type, payload, "INFO")

    def warn(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at warning level."""
        return self._notify(ctxt, event_type, payload, "WARN")

    warning = warn

    def error(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at error level."""
        return self._notify(ctxt, event_type, payload, "ERROR")

    def critical(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at critical level."""
        return self._notify(ctxt, event_type, payload, "CRITICAL")

    def sample(self, ctxt: Any, event_type: str, payload: Any) -> Sent:
        """Send a notification at sample level, for frequent small ones such as measurements."""
        return self._notify(ctxt, event_type, payload, "SAMPLE")

    def send_many(self, ctxt: Any, priority: str, events: Iterable[tuple[str, Any]]) -> Sent:
        """Send a notification for each (event_type, payload), faster than one by one."""
        level = "WARN" if priority.lower() == "warning" else priority.upper()
        if level.lower() not in PRIORITIES:
            raise ValueError(f"unknown priority {priority!r}: known are {', '.join(PRIORITIES)}")
        if not self._channels:
            return self._no_channel()
        context = self._serialize_context(ctxt)
        serialize, publisher_id = self._serializer.serialize_entity, self.publisher_id
        new_id, now = message_ids.new_message_id, message_ids.timestamp_now
        return self._send(
            [
                make_notification(
                    (new_id(), publisher_id, event_type, level, serialize(ctxt, payload), now(), context)
                )
                for event_type, payload in events
            ]
        )

    def is_enabled(self) -> bool:
        """Return False if noop is the only driver, as in oslo.messaging."""
        return self._driver_names != ["noop"]

    def flush(self, timeout: float | None = None) -> int:
        """Wait until all records are delivered, failed or in the spool; return how many are not."""
        return self.transport.flush(timeout)

    def stats(self) -> Stats:
        """Return the counts of all notifiers of the transport."""
        return self.transport.stats()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[list[Receipt]]:
        """Publish all notifications that this thread sends inside the ``with`` block, or none.

        At the end of the block they become visible together, and the list that the block got
        holds the receipts. If that fails, ``MessageDeliveryFailure`` is raised and none becomes
        visible. If the block raises, nothing is published. Listeners that read only committed
        records, which is the default, see none of them earlier. Inside the block a call of a
        notifier prepared with ``wait`` returns at once, with an empty list.
        """
        thread = threading.get_ident()
        if thread in self._transactions:
            raise DeliveryFailed("a transaction of this notifier is open in this thread already")
        transaction = self.transport.driver.transaction()
        receipts: list[Receipt] = []
        self._transactions[thread] = transaction
        try:
            yield receipts
        except BaseException:
            transaction.abort()
            raise
        finally:
            del self._transactions[thread]
        receipts += transaction.commit(self._wait_timeout)

    def _notify(self, ctxt: Any, event_type: str, payload: Any, priority: str) -> Sent:
        if not self._channels:
            return self._no_channel()
        notification: Notification = make_notification(
            (
                message_ids.new_message_id(),
                self.publisher_id,
                event_type,
                priority,
                self._serializer.serialize_entity(ctxt, payload),
                message_ids.timestamp_now(),
                self._serialize_context(ctxt),
            )
        )
        return self._send((notification,))

    def _no_channel(self) -> Sent:
        return [] if self._wait else None

    def _serialize_context(self, ctxt: Any) -> dict[str, Any]:
        if ctxt is None or type(ctxt) is dict:
            # As in oslo.messaging: a plain dict may hold credentials and cannot be redacted.
            redacted: Any = {}
        else:
            redacted = _redact(ctxt)
        return _as_dict(self._serializer.serialize_context(redacted))

    def _send(self, notifications: Sequence[Notification]) -> Sent:
        how, waiter = self._how, None
        if self._wait or self._transactions:
            waiter = DeliveryWaiter() if self._wait else None
            how = how._replace(waiter=waiter, transaction=self._transactions.get(threading.get_ident()))
        refusal: MessagingException | None = None
        for each in self._channels:
            try:
                each.send(notifications, how)
            except MessagingException as error:
                # The other channels get the notifications first; then the caller gets the error.
                refusal = refusal or error
            except Exception as error:  # a third party's channel must not crash the service
                LOG.exception("The channel %s failed", type(each).__name__)
                if waiter is not None:
                    failed = f"the channel {type(each).__name__} raised {type(error).__name__}"
                    refusal = refusal or DeliveryFailed(failed)
        if refusal is not None:
            raise refusal
        return None if waiter is None else waiter.receipts(self._wait_timeout, self.transport.driver.trouble)


def _redact(ctxt: Any) -> Any:
    try:
        return ctxt.redacted_copy()
    except AttributeError:
        LOG.warning(
            "The context of a notification (%s) has no redacted_copy() and is left out",
            type(ctxt).__name__,
        )
        return {}


def _as_dict(context: Any) -> dict[str, Any]:
    if type(context) is dict:
        return context
    if isinstance(context, Mapping):
        return dict(context)
    to_dict = getattr(context, "to_dict", None)
    return dict(to_dict()) if to_dict is not None else {}
