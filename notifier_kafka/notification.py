"""What users send and get: a frozen value, its priorities and the verdict over it."""

from functools import partial
from typing import Any, NamedTuple

PRIORITIES = ("audit", "debug", "info", "warn", "error", "critical", "sample")


class Notification(NamedTuple):
    """One notification, as it is or will be on the bus.

    ``timestamp`` is naive UTC text as the wire formats have it. ``priority`` is upper
    case. A field is None where an old sender left it out.
    """

    message_id: str | None
    publisher_id: str | None
    event_type: str | None
    priority: str
    payload: Any
    timestamp: str | None
    context: dict[str, Any]


# What the constructor does, without its Python code: one is made for every notification.
make_notification: partial[Any] = partial(tuple.__new__, Notification)


class NotificationResult:
    """What an endpoint may return; None counts as HANDLED."""

    HANDLED = "handled"
    REQUEUE = "requeue"
