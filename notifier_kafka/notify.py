"""oslo.messaging's module ``notify``: the names that programs written for it import from there."""

# The modules inside it, by their names in oslo.messaging.
from notifier_kafka.integrations import logging_handlers as log_handler
from notifier_kafka.integrations import logging_handlers as logger
from notifier_kafka.integrations import wsgi as middleware
from notifier_kafka.integrations.logging_handlers import (
    LoggingErrorNotificationHandler,
    LoggingNotificationHandler,
    PublishErrorsHandler,
)
from notifier_kafka.listening import dispatcher, listener
from notifier_kafka.listening import filters as filter  # noqa: A004
from notifier_kafka.listening.filters import NotificationFilter
from notifier_kafka.listening.listener import get_batch_notification_listener, get_notification_listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.publishing import notifier
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import get_notification_transport

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
