"""The name under which programs written for oslo.messaging also find its notification half."""

# Its modules by their names there.
from notifier_kafka import dispatcher, listener, middleware, notifier
from notifier_kafka import filters as filter  # noqa: A004
from notifier_kafka import handlers as log_handler
from notifier_kafka import handlers as logger
from notifier_kafka.filters import NotificationFilter
from notifier_kafka.handlers import (
    LoggingErrorNotificationHandler,
    LoggingNotificationHandler,
    PublishErrorsHandler,
)
from notifier_kafka.listener import get_batch_notification_listener, get_notification_listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.notifier import Notifier
from notifier_kafka.transport import get_notification_transport

__all__ = [
    "LoggingErrorNotificationHandler",
    "LoggingNotificationHandler",
    "NotificationFilter",
    "NotificationResult",
    "Notifier",
    "PublishErrorsHandler",
    "dispatcher",
    "filter",
    "get_batch_notification_listener",
    "get_notification_listener",
    "get_notification_transport",
    "listener",
    "log_handler",
    "logger",
    "middleware",
    "notifier",
]
