"""Notifications with oslo.messaging's API, over Kafka or an embedded log, that are not lost.

A program that uses oslo.messaging only for notifications works unchanged with
``import notifier_kafka as oslo_messaging``.
"""

from notifier_kafka import conffixture, notify, serializer, server, transport

# Documented modules that ``import notifier_kafka`` alone makes reachable.
from notifier_kafka import driver as driver
from notifier_kafka import errors as exceptions
from notifier_kafka import forks as forks
from notifier_kafka import url as url
from notifier_kafka.conffixture import ConfFixture
from notifier_kafka.config.options import ListenerPolicy, set_transport_defaults
from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract.driver import Partition, Receipt
from notifier_kafka.contract.url import TransportHost
from notifier_kafka.errors import (
    CommitRefused,
    ConfigurationError,
    DecodeError,
    DeliveryBarred,
    DeliveryFailed,
    DeliveryGivenUp,
    DriverLoadFailure,
    DriverNotFound,
    EncodeError,
    ExecutorLoadFailure,
    GroupBusy,
    InvalidTarget,
    InvalidTransportURL,
    LogUnusable,
    MessageDeliveryFailure,
    MessagingException,
    MessagingServerError,
    MessagingTimeout,
    OutboxFull,
    ServerListenError,
    SpoolFull,
    SpoolTooOld,
    TaskTimeout,
    TopicNotFound,
    TransportUnavailable,
)
from notifier_kafka.integrations.logging_handlers import (
    LoggingErrorNotificationHandler,
    LoggingNotificationHandler,
    PublishErrorsHandler,
)
from notifier_kafka.integrations.wsgi import RequestNotifier
from notifier_kafka.listening.filters import NotificationFilter
from notifier_kafka.listening.listener import (
    Listener,
    get_batch_notification_listener,
    get_notification_listener,
)
from notifier_kafka.notification import Notification, NotificationResult
from notifier_kafka.publishing.notifier import Notifier
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport
from notifier_kafka.stats.publisher_stats import Stats
from notifier_kafka.target import Target
from notifier_kafka.version import __version__
from notifier_kafka.wire.serializer import JsonPayloadSerializer, NoOpSerializer, Serializer

__all__ = [
    "CommitRefused",
    "ConfFixture",
    "ConfigurationError",
    "DecodeError",
    "DeliveryBarred",
    "DeliveryFailed",
    "DeliveryGivenUp",
    "DriverLoadFailure",
    "DriverNotFound",
    "EncodeError",
    "ExecutorLoadFailure",
    "GroupBusy",
    "InvalidTarget",
    "InvalidTransportURL",
    "JsonPayloadSerializer",
    "Listener",
    "ListenerPolicy",
    "LogUnusable",
    "LoggingErrorNotificationHandler",
    "LoggingNotificationHandler",
    "MessageDeliveryFailure",
    "MessagingException",
    "MessagingServerError",
    "MessagingTimeout",
    "NoOpSerializer",
    "Notification",
    "NotificationFilter",
    "NotificationResult",
    "NotificationTransport",
    "Notifier",
    "OutboxFull",
    "Partition",
    "PublishErrorsHandler",
    "Receipt",
    "RequestNotifier",
    "Serializer",
    "ServerListenError",
    "SpoolFull",
    "SpoolTooOld",
    "Stats",
    "Target",
    "TaskTimeout",
    "TopicNotFound",
    "TransportHost",
    "TransportURL",
    "TransportUnavailable",
    "__version__",
    "conffixture",
    "exceptions",
    "get_batch_notification_listener",
    "get_notification_listener",
    "get_notification_transport",
    "notify",
    "serializer",
    "server",
    "set_transport_defaults",
    "transport",
]


# Documented modules, which programs import by their path.
_MODULES = ("client", "driver", "errors", "forks", "outbox", "testing", "url")


def __dir__() -> list[str]:
    """List the public names. All other modules in here are private."""
    return [*__all__, *(name for name in _MODULES if name in globals())]
