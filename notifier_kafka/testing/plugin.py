"""A pytest plugin for users' tests: a private log, a transport on it, and what was published.

pytest loads this module in every run where the package is installed. So it imports almost
nothing by itself; the fixtures import what they need.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oslo_config import cfg

    from notifier_kafka.notification import Notification
    from notifier_kafka.publishing.transport import NotificationTransport

FLUSH_TIMEOUT_SECONDS = 30.0

# For the conformance suite: show the values in a failed assertion.
pytest.register_assert_rewrite("notifier_kafka.testing.conformance")


@pytest.fixture
def notifier_conf(tmp_path_factory: pytest.TempPathFactory) -> "cfg.ConfigOpts":
    """A configuration for this test: a private SQLite log, the driver ``messagingv2``."""
    from oslo_config import cfg

    from notifier_kafka.config import options

    conf = cfg.ConfigOpts()
    conf([], project="notifier-kafka-tests", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    log = tmp_path_factory.mktemp("notifier-kafka") / "notifications.db"
    conf.set_override("transport_url", options.log_url(log))
    conf.set_override("driver", ["messagingv2"], group=options.NOTIFICATIONS)
    return conf


@pytest.fixture
def notifier_transport(notifier_conf: "cfg.ConfigOpts") -> "Iterator[NotificationTransport]":
    """A transport on the private log; cleaned up after the test."""
    from notifier_kafka.publishing import transport

    made = transport.get_notification_transport(notifier_conf)
    yield made
    made.cleanup()


@pytest.fixture
def captured_notifications(
    notifier_transport: "NotificationTransport",
) -> "Callable[[], list[Notification]]":
    """A function that returns the notifications published so far over ``notifier_transport``.

    Of all topics, in the order of their timestamps.
    """
    from notifier_kafka.wire import codec

    def captured() -> "list[Notification]":
        left = notifier_transport.flush(FLUSH_TIMEOUT_SECONDS)
        if left:
            pytest.fail(f"{left} notifications did not reach the log within {FLUSH_TIMEOUT_SECONDS:g} s")
        driver = notifier_transport.driver
        spans = driver.spans(driver.admin().list_topics())
        deliveries = [delivery for span in spans for delivery in driver.read(span)]
        notifications = [codec.decode(delivery.record) for delivery in deliveries]
        # By the sender's timestamps: they have microseconds, those of the log may not.
        return sorted(notifications, key=lambda notification: notification.timestamp or "")

    return captured
