"""The name under which programs written for oslo.messaging also find the transport and its URL."""

from notifier_kafka.config.options import set_transport_defaults
from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract.url import TransportHost
from notifier_kafka.errors import DriverLoadFailure, InvalidTransportURL
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport

__all__ = [
    "DriverLoadFailure",
    "InvalidTransportURL",
    "NotificationTransport",
    "TransportHost",
    "TransportURL",
    "get_notification_transport",
    "set_transport_defaults",
]
