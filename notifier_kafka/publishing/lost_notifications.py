"""A user's function for lost notifications: it is given notifications, where the log has records."""

import logging
from collections.abc import Callable

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError, MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.stats.losses import OnLostRecord
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)

OnLoss = Callable[[Notification, MessagingException], object]
"""A user's function. Called in whichever thread finds out, which may be the one that publishes."""


def on_lost_record(on_failure: OnLoss) -> OnLostRecord:
    """Make of a user's function one that takes the record, and whose errors end nothing."""

    def decode_and_call(record: Record, error: MessagingException) -> None:
        try:
            on_failure(codec.decode(record), error)
        except DecodeError:
            LOG.debug("A lost record of topic %s is no notification", record.topic)
        except Exception:
            # The user's code on a thread of ours: its error must not end publishing.
            LOG.exception("The on_failure of a transport raised")

    return decode_and_call
