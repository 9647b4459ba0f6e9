"""The base class of channels: a channel decides what is done with notifications."""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oslo_config import cfg

from notifier_kafka.contract.driver import Transaction
from notifier_kafka.notification import Notification
from notifier_kafka.publishing.delivery_waiter import DeliveryWaiter
from notifier_kafka.publishing.transport import NotificationTransport

NAMESPACE = "notifier_kafka.channels"


class Sending(NamedTuple):
    """How notifications are to be sent.

    ``retry`` is oslo.messaging's (-1 is without limit). ``key`` returns the ordering key. A
    ``waiter`` is told the outcome of every record. With a ``transaction``, records for the bus
    go into it.
    """

    retry: int
    key: Callable[[Notification], bytes | None]
    waiter: DeliveryWaiter | None = None
    transaction: Transaction | None = None


class Channel(abc.ABC):
    """Found by name in ``notifier_kafka.channels``; each notifier has its own instance.

    A channel that does not publish through ``transport`` sets ``publishes`` to False. Then the
    notifier opens no publisher for it.
    """

    publishes: bool = True

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: NotificationTransport) -> None:
        self.conf = conf
        self.topics = topics
        self.transport = transport

    @abc.abstractmethod
    def send(self, notifications: Sequence[Notification], how: Sending) -> None:
        """Send the notifications without blocking on I/O.

        Raises ``EncodeError`` for a notification that cannot be encoded, before any is sent.
        Raises ``DeliveryFailed`` for one that is refused; those before it are sent, those after
        it are not.
        """
