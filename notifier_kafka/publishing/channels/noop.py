"""The channel noop: it drops notifications."""

from collections.abc import Sequence

from notifier_kafka.notification import Notification
from notifier_kafka.publishing.channels import channel


class NoopChannel(channel.Channel):
    """Drops every notification."""

    publishes = False

    def send(self, notifications: Sequence[Notification], how: channel.Sending) -> None:
        pass
