"""The channel test: it keeps notifications in a list, for tests."""

from collections.abc import Sequence
from typing import Any

from notifier_kafka.notification import Notification
from notifier_kafka.publishing.channels import channel

NOTIFICATIONS: list[tuple[dict[str, Any], dict[str, Any], str, int]] = []
"""The sent notifications as (context, message, priority, retry), as in oslo.messaging."""


def reset() -> None:
    """Empty the list."""
    # In place: a test may have imported the list itself.
    NOTIFICATIONS.clear()


class TestChannel(channel.Channel):
    """Records every notification."""

    __test__ = False  # pytest would collect the class because of its name
    publishes = False

    def send(self, notifications: Sequence[Notification], how: channel.Sending) -> None:
        for sent in notifications:
            message = sent._asdict()
            context = message.pop("context")
            NOTIFICATIONS.append((context, message, sent.priority, how.retry))
