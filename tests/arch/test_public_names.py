"""The public names of the package are exactly these; a program may rely on each."""

import notifier_kafka

# A program that says `import notifier_kafka as oslo_messaging` finds these where they were.
OSLO_MESSAGING = {
    "DriverLoadFailure",
    "ExecutorLoadFailure",
    "InvalidTarget",
    "InvalidTransportURL",
    "JsonPayloadSerializer",
    "LoggingErrorNotificationHandler",
    "LoggingNotificationHandler",
    "MessageDeliveryFailure",
    "MessagingException",
    "MessagingServerError",
    "MessagingTimeout",
    "NoOpSerializer",
    "NotificationFilter",
    "NotificationResult",
    "Notifier",
    "PublishErrorsHandler",
    "Serializer",
    "ServerListenError",
    "Target",
    "TransportHost",
    "TransportURL",
    "get_batch_notification_listener",
    "get_notification_listener",
    "get_notification_transport",
    "set_transport_defaults",
}

ADDED = {
    "ConfFixture",
    "ConfigurationError",
    "DeliveryFailed",
    "DriverNotFound",
    "EncodeError",
    "OutboxFull",
    "RequestNotifier",
}


def test_public_names_are_exact() -> None:
    assert set(notifier_kafka.__all__) == OSLO_MESSAGING | ADDED


def test_every_public_name_is_there() -> None:
    missing = {name for name in notifier_kafka.__all__ if not hasattr(notifier_kafka, name)}

    assert missing == set()
