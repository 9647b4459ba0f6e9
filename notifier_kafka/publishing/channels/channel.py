"""What a channel is: it decides what becomes of notifications."""

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

    ``retry`` as in oslo.messaging (-1 for ever); ``key`` finds the ordering key; a
    ``waiter`` is told the fate of every record. Records for the bus go into the
    ``transaction`` when there is one.
    """

    retry: int
    key: Callable[[Notification], bytes | None]
    waiter: DeliveryWaiter | None = None
    transaction: Transaction | None = None


class Channel(abc.ABC):
    """Found by name in ``notifier_kafka.channels``; one instance for each notifier.

    One that hands nothing to ``transport`` sets ``publishes`` to False: then a notifier opens none.
    """

    publishes: bool = True

    def __init__(self, conf: cfg.ConfigOpts, topics: Sequence[str], transport: NotificationTransport) -> None:
        self.conf = conf
        self.topics = topics
        self.transport = transport

    @abc.abstractmethod
    def send(self, notifications: Sequence[Notification], how: Sending) -> None:
        """Deal with the notifications without blocking on I/O.

        Raises ``EncodeError`` for one that has no form, before any of them is sent, and
        ``DeliveryFailed`` for one that is not taken; those before it are sent, those behind
        it are not.
        """
