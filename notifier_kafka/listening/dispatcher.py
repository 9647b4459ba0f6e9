"""Endpoints and their filters: from notifications to one verdict each."""

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from notifier_kafka.listening.filters import NotificationFilter
from notifier_kafka.notification import PRIORITIES, Notification, NotificationResult
from notifier_kafka.wire.serializer import NoOpSerializer, Serializer

if TYPE_CHECKING:
    from notifier_kafka.listening.async_endpoints import EventLoop

LOG = logging.getLogger(__name__)

# An endpoint that calls sys.exit() would end the listener's thread, not the program.
_RAISED = (Exception, SystemExit)

Message = dict[str, Any]
"""What a batch endpoint gets a list of: ctxt, publisher_id, event_type, payload, metadata."""


class Verdict(NamedTuple):
    """What the endpoints made of a notification. ``error`` is set when one raised."""

    result: str
    error: BaseException | None = None


HANDLED = Verdict(NotificationResult.HANDLED)
REQUEUE = Verdict(NotificationResult.REQUEUE)
UNFINISHED = Verdict("unfinished")
"""Of what no endpoint got, because the listener was told to stop before."""


class Dispatcher:
    """Gives each notification to the endpoints, in their order, until one refuses it."""

    def __init__(self, endpoints: Sequence[object], serializer: Serializer | None) -> None:
        # Asked for every notification, and most programs have none.
        self._serializer = None if type(serializer) is NoOpSerializer else serializer or None
        self._loop: EventLoop | None = None
        self._beginning = threading.Lock()
        self._callbacks: dict[str, list[tuple[NotificationFilter | None, Callable[..., Any]]]] = {}
        for endpoint in endpoints:
            screen = getattr(endpoint, "filter_rule", None)
            for priority in PRIORITIES:
                if (method := getattr(endpoint, priority, None)) is not None:
                    # As notifications spell it.
                    self._callbacks.setdefault(priority.upper(), []).append((screen, method))

    @property
    def supported_priorities(self) -> list[str]:
        """The priorities that some endpoint has a method for."""
        return [priority.lower() for priority in self._callbacks]

    def dispatch(self, notifications: Sequence[Notification]) -> Iterable[Verdict]:
        """Return a verdict for each notification, which is handled when it is asked for."""
        return map(self.handle, notifications)

    def close(self) -> None:
        """End what runs for endpoints; it begins anew when it is needed again."""
        if self._loop is not None:
            self._loop.close()

    def handle(self, notification: Notification) -> Verdict:
        """Give one notification to the endpoints."""
        callbacks = self._callbacks.get(notification.priority)
        if callbacks is None:
            return HANDLED
        try:
            ctxt, publisher_id, event_type, payload, metadata = self._open(notification)
            for screen, callback in callbacks:
                if screen is not None and not screen.match(ctxt, publisher_id, event_type, metadata, payload):
                    continue
                answer = callback(ctxt, publisher_id, event_type, payload, metadata)
                if answer is not None and self._awaited(answer) == NotificationResult.REQUEUE:
                    return REQUEUE
        except _RAISED as error:  # user code; its notification comes back
            return _failed(error)
        return HANDLED

    def _awaited(self, answer: Any) -> Any:
        """Return an endpoint's answer once it is there; a method may be a coroutine function."""
        if not inspect.isawaitable(answer):
            return answer
        # Here, because asyncio is a tenth of the time that importing this package takes.
        from notifier_kafka.listening import async_endpoints

        with self._beginning:
            self._loop = self._loop or async_endpoints.EventLoop()
        return self._loop.finish(answer)

    def _open(self, notification: Notification) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Return what an endpoint gets, in its order; undo what the sender's serializer did."""
        message_id, publisher_id, event_type, _priority, payload, timestamp, ctxt = notification
        metadata = {"message_id": message_id, "timestamp": timestamp}
        if self._serializer is not None:
            ctxt = self._serializer.deserialize_context(ctxt)
            payload = self._serializer.deserialize_entity(ctxt, payload)
        return ctxt, publisher_id, event_type, payload, metadata


class BatchDispatcher(Dispatcher):
    """Gives lists of messages to the endpoints, one list for each priority."""

    # The priorities of the batch at hand whose lists are being handled, or were, as a whole.
    _given: frozenset[str] = frozenset()

    @property
    def waiting(self) -> frozenset[str]:
        """The priorities, in upper case, whose lists are not being handled and were not as a whole."""
        return frozenset(self._callbacks) - self._given

    def dispatch(self, notifications: Sequence[Notification]) -> Iterable[Verdict]:
        self._given = frozenset()
        verdicts = [HANDLED] * len(notifications)
        by_priority, unopened = self._messages(notifications, verdicts)
        for priority in sorted(by_priority):
            places, messages = by_priority[priority]
            before, self._given = self._given, self._given | ({priority} - unopened)
            verdict = self._dispatch_list(priority, messages)
            if verdict is not HANDLED:
                self._given = before
                for index in places:
                    verdicts[index] = verdict
        return verdicts

    def _messages(
        self, notifications: Sequence[Notification], verdicts: list[Verdict]
    ) -> tuple[dict[str, tuple[list[int], list[Message]]], set[str]]:
        """Make the lists, with the place of each; name those that lack what could not be opened.

        That gets its verdict here.
        """
        by_priority: dict[str, tuple[list[int], list[Message]]] = {}
        unopened: set[str] = set()
        for index, notification in enumerate(notifications):
            priority = notification.priority
            if priority not in self._callbacks:
                continue
            try:
                opened = self._open(notification)
            except _RAISED as error:  # a user's serializer
                verdicts[index] = _failed(error)
                unopened.add(priority)
                continue
            if priority not in by_priority:
                by_priority[priority] = ([], [])
            places, messages = by_priority[priority]
            places.append(index)
            messages.append(_message(*opened))
        return by_priority, unopened

    def _dispatch_list(self, priority: str, messages: list[Message]) -> Verdict:
        try:
            for screen, callback in self._callbacks[priority]:
                passed = (
                    list(messages)
                    if screen is None
                    else [message for message in messages if _passes(screen, message)]
                )
                if passed and self._awaited(callback(passed)) == NotificationResult.REQUEUE:
                    return REQUEUE
        except _RAISED as error:  # user code; its notifications come back
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


def _passes(screen: NotificationFilter, message: Message) -> bool:
    return screen.match(
        message["ctxt"],
        message["publisher_id"],
        message["event_type"],
        message["metadata"],
        message["payload"],
    )


def _failed(error: BaseException) -> Verdict:
    LOG.error("An endpoint raised; what it was given comes back", exc_info=error)
    return Verdict(NotificationResult.REQUEUE, error)
