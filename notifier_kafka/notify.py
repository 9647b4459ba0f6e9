"""The name under which programs written for oslo.messaging also find its notification half."""

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
    "get_batch_notification_listener",
    "get_notification_listener",
    "get_notification_transport",
]
