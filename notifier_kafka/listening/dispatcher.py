"""Calls the endpoints whose filters match: one verdict for each notification."""

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from notifier_kafka.listening.filters import NotificationFilter
from notifier_kafka.notification import PRIORITIES, Notification, NotificationResult
from notifier_kafka.wire.serializer import NoOpSerializer, Serializer

if TYPE_CHECKING:
    from notifier_kafka.listening.async_endpoints import EventLoop

# SystemExit: an endpoint that calls sys.exit() would end the listener's thread, not the program.
_ENDPOINT_ERRORS = (Exception, SystemExit)

Message = dict[str, Any]
"""One item of a batch endpoint's list: ctxt, publisher_id, event_type, payload, metadata."""


class Verdict(NamedTuple):
    """The endpoints' answer to a notification. ``error`` is what one of them raised.

    ``retries`` and ``failures`` count the tries before the last one that were made in place,
    and those of them that raised.
    """

    result: str
    error: BaseException | None = None
    retries: int = 0
    failures: int = 0


HANDLED = Verdict(NotificationResult.HANDLED)
REQUEUE = Verdict(NotificationResult.REQUEUE)
UNFINISHED = Verdict("unfinished")
"""No endpoint got the notification: the listener was stopped before."""


class Dispatcher:
    """Gives each notification to the endpoints, in their order, until one refuses it or raises."""

    def __init__(self, endpoints: Sequence[object], serializer: Serializer | None) -> None:
        # None if it would do nothing: it is asked for every notification.
        self._serializer = None if type(serializer) is NoOpSerializer else serializer or None
        self._loop: EventLoop | None = None
        self._loop_lock = threading.Lock()
        self._callbacks: dict[str, list[tuple[NotificationFilter | None, Callable[..., Any]]]] = {}
        for endpoint in endpoints:
            filter_rule = getattr(endpoint, "filter_rule", None)
            for priority in PRIORITIES:
                if (method := getattr(endpoint, priority, None)) is not None:
                    # In upper case, as notifications have it.
                    self._callbacks.setdefault(priority.upper(), []).append((filter_rule, method))

    @property
    def supported_priorities(self) -> list[str]:
        """The priorities for which an endpoint has a method."""
        return [priority.lower() for priority in self._callbacks]

    def dispatch(self, notifications: Sequence[Notification]) -> Iterable[Verdict]:
        """Return a verdict for each notification. Asking for a verdict may be what calls the endpoints."""
        return map(self.handle, notifications)

    def close(self) -> None:
        """End the event loop of asynchronous endpoints; it is started again when it is needed."""
        if self._loop is not None:
            self._loop.close()

    def handle(self, notification: Notification) -> Verdict:
        """Give one notification to the endpoints."""
        callbacks = self._callbacks.get(notification.priority)
        if callbacks is None:
            return HANDLED
        try:
            ctxt, publisher_id, event_type, payload, metadata = self._deserialized(notification)
            for rule, callback in callbacks:
                if rule is not None and not rule.match(ctxt, publisher_id, event_type, metadata, payload):
                    continue
                answer = callback(ctxt, publisher_id, event_type, payload, metadata)
                if answer is not None and self._awaited(answer) == NotificationResult.REQUEUE:
                    return REQUEUE
        except _ENDPOINT_ERRORS as error:
            return _failed(error)
        return HANDLED

    def _awaited(self, answer: Any) -> Any:
        """Return an endpoint's answer; wait for it if the method is a coroutine."""
        if not inspect.isawaitable(answer):
            return answer
        # Imported here: asyncio takes a tenth of the time of importing this package.
        from notifier_kafka.listening import async_endpoints

        with self._loop_lock:
            self._loop = self._loop or async_endpoints.EventLoop()
        return self._loop.run(answer)

    def _deserialized(self, notification: Notification) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return the arguments of an endpoint, in their order, deserialized."""
        message_id, publisher_id, event_type, _priority, payload, timestamp, ctxt = notification
        metadata = {"message_id": message_id, "timestamp": timestamp}
        if self._serializer is not None:
            ctxt = self._serializer.deserialize_context(ctxt)
            payload = self._serializer.deserialize_entity(ctxt, payload)
        return ctxt, publisher_id, event_type, payload, metadata


class BatchDispatcher(Dispatcher):
    """Gives lists of messages to the endpoints, one list for each priority."""

    # The priorities of the current batch whose whole list was handled or is being handled.
    _delivered: frozenset[str] = frozenset()

    @property
    def undelivered_priorities(self) -> frozenset[str]:
        """The priorities, in upper case, of which the endpoints did not get the whole list yet."""
        return frozenset(self._callbacks) - self._delivered

    def dispatch(self, notifications: Sequence[Notification]) -> Iterable[Verdict]:
        self._delivered = frozenset()
        verdicts = [HANDLED] * len(notifications)
        by_priority, incomplete = self._messages(notifications, verdicts)
        for priority in sorted(by_priority):
            indexes, messages = by_priority[priority]
            before, self._delivered = self._delivered, self._delivered | ({priority} - incomplete)
            verdict = self._dispatch_list(priority, messages)
            if verdict is not HANDLED:
                self._delivered = before
                for index in indexes:
                    verdicts[index] = verdict
        return verdicts

    def _messages(
        self, notifications: Sequence[Notification], verdicts: list[Verdict]
    ) -> tuple[dict[str, tuple[list[int], list[Message]]], set[str]]:
        """Return the lists with the indexes of their notifications, and the priorities of incomplete lists.

        A list is incomplete if the serializer raised for one of its notifications, which gets
        its verdict here.
        """
        by_priority: dict[str, tuple[list[int], list[Message]]] = {}
        incomplete: set[str] = set()
        for index, notification in enumerate(notifications):
            priority = notification.priority
            if priority not in self._callbacks:
                continue
            try:
                fields = self._deserialized(notification)
            except _ENDPOINT_ERRORS as error:
                verdicts[index] = _failed(error)
                incomplete.add(priority)
                continue
            if priority not in by_priority:
                by_priority[priority] = ([], [])
            indexes, messages = by_priority[priority]
            indexes.append(index)
            messages.append(_message(*fields))
        return by_priority, incomplete

    def _dispatch_list(self, priority: str, messages: list[Message]) -> Verdict:
        try:
            for rule, callback in self._callbacks[priority]:
                matching = (
                    list(messages) if rule is None else [each for each in messages if _matches(rule, each)]
                )
                if matching and self._awaited(callback(matching)) == NotificationResult.REQUEUE:
                    return REQUEUE
        except _ENDPOINT_ERRORS as error:
            return _failed(error)
        return HANDLED


def _message(ctxt: Any, publisher_id: Any, event_type: Any, payload: Any, metadata: Any) -> Message:
    return {
        "ctxt": ctxt,
        "publisher_id": publisher_id,
        "event_type": event_type,
        "payload": payload,
        "metadata": metadata,
    }


def _matches(rule: NotificationFilter, message: Message) -> bool:
    return rule.match(
        message["ctxt"],
        message["publisher_id"],
        message["event_type"],
        message["metadata"],
        message["payload"],
    )


def _failed(error: BaseException) -> Verdict:
    return Verdict(NotificationResult.REQUEUE, error)
