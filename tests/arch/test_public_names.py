"""The public names of the package are exactly these; a program may rely on each."""

import importlib
import inspect
import subprocess
import sys

import pytest

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

# Reached there as oslo_messaging.conffixture.ConfFixture, oslo_messaging.notify.middleware and so on.
OSLO_MODULES = {"conffixture", "exceptions", "notify", "serializer", "server", "transport"}

# Imported by their path, as notifier_kafka.driver.
DOCUMENTED_MODULES = {"client", "driver", "errors", "forks", "outbox", "testing", "url"}

# Of these, what a program reaches as notifier_kafka.driver.Driver without importing the module itself.
IMPORTED_MODULES = {"driver", "errors", "forks", "url"}

ADDED = {
    "CommitRefused",
    "ConfFixture",
    "ConfigurationError",
    "DecodeError",
    "DeliveryBarred",
    "DeliveryFailed",
    "DeliveryGivenUp",
    "DriverNotFound",
    "EncodeError",
    "GroupBusy",
    "Listener",
    "ListenerPolicy",
    "LogUnusable",
    "Notification",
    "NotificationTransport",
    "OutboxFull",
    "Partition",
    "SpoolFull",
    "SpoolTooOld",
    "Receipt",
    "RequestNotifier",
    "Stats",
    "TaskTimeout",
    "TopicNotFound",
    "TransportUnavailable",
    "__version__",
}


def test_public_names_are_exact() -> None:
    assert set(notifier_kafka.__all__) == OSLO_MESSAGING | OSLO_MODULES | ADDED


def test_every_public_name_is_there() -> None:
    missing = {name for name in notifier_kafka.__all__ if not hasattr(notifier_kafka, name)}

    assert missing == set()


def test_no_name_is_public_by_accident() -> None:
    # Submodules appear in the package's namespace once they are imported; nothing else may.
    found = {name for name, value in vars(notifier_kafka).items() if not inspect.ismodule(value)}

    assert {name for name in found if not name.startswith("_")} <= OSLO_MESSAGING | ADDED


def test_dir_shows_the_public_names_and_the_documented_modules() -> None:
    for name in (*DOCUMENTED_MODULES, "publishing.transport"):
        importlib.import_module(f"notifier_kafka.{name}")

    assert set(dir(notifier_kafka)) == set(notifier_kafka.__all__) | DOCUMENTED_MODULES


def test_documented_modules_are_there_without_an_import_of_their_own() -> None:
    program = "import notifier_kafka as n; print(*[m for m in n._MODULES if hasattr(n, m)])"
    # In a process of its own: other tests import all of them.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) == IMPORTED_MODULES


def test_names_of_oslo_messaging_that_are_aliases_are_the_same_class() -> None:
    # An except clause written for either name must catch both.
    assert notifier_kafka.MessageDeliveryFailure is notifier_kafka.DeliveryFailed
    assert notifier_kafka.exceptions.MessageDeliveryFailure is notifier_kafka.DeliveryFailed
    assert notifier_kafka.conffixture.ConfFixture is notifier_kafka.ConfFixture


@pytest.mark.parametrize(
    "path",
    [
        "notifier_kafka.client:Consumer",
        "notifier_kafka.client:Producer",
        "notifier_kafka.driver:Driver",
        "notifier_kafka.driver:DriverURL",
        "notifier_kafka.errors:MessagingException",
        "notifier_kafka.forks:renewed",
        "notifier_kafka.outbox:Outbox",
        "notifier_kafka.testing.clusters:kafka_cluster",
        "notifier_kafka.testing.conformance:DriverSuite",
        "notifier_kafka.url:TransportURL",
        "spark_sinks.decode:RAW",
        "spark_sinks.source:ByDriver",
        "spark_sinks.source:Source",
        "spark_sinks.submit:needed",
    ],
)
def test_documented_paths_stay(path: str) -> None:
    """Other distributions import these, or name them in entry points: moving code leaves them alone."""
    module, _, name = path.partition(":")

    assert getattr(importlib.import_module(module), name) is not None
