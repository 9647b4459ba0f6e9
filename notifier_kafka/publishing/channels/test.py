"""The channel test: notifications stay in a list of this process, for its tests."""

from collections.abc import Sequence
from typing import Any

from notifier_kafka.notification import Notification
from notifier_kafka.publishing.channels import channel

NOTIFICATIONS: list[tuple[dict[str, Any], dict[str, Any], str, int]] = []
"""What was sent: (context, message, priority, retry), as oslo.messaging records it."""


def reset() -> None:
    """Forget what was recorded."""
    # In place, so that a test may import the list itself.
    NOTIFICATIONS.clear()


class TestChannel(channel.Channel):
    """Records every notification."""

    __test__ = False  # pytest would take the name for that of a test
    publishes = False

    def send(self, notifications: Sequence[Notification], how: channel.Sending) -> None:
        for sent in notifications:
            message = sent._asdict()
            context = message.pop("context")
            NOTIFICATIONS.append((context, message, sent.priority, how.retry))
