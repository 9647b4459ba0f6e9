"""A notification, its priorities, and the verdict of an endpoint."""

from functools import partial
from typing import Any, NamedTuple

PRIORITIES = ("audit", "debug", "info", "warn", "error", "critical", "sample")


class Notification(NamedTuple):
    """One notification, as it is on the bus.

    ``timestamp`` is text, naive UTC, as in the wire formats. ``priority`` is in upper case.
    A field is None if an old sender left it out.
    """

    message_id: str | None
    publisher_id: str | None
    event_type: str | None
    priority: str
    payload: Any
    timestamp: str | None
    context: dict[str, Any]


# The constructor of a named tuple is Python code. This makes the same without it, faster.
make_notification: partial[Any] = partial(tuple.__new__, Notification)


class NotificationResult:
    """What an endpoint may return; None counts as HANDLED."""

    HANDLED = "handled"
    REQUEUE = "requeue"
