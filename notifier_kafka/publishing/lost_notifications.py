"""A user's function for lost notifications: it gets notifications where the log has records."""

import logging
from collections.abc import Callable

from notifier_kafka.contract import callbacks
from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError, MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.stats.losses import OnLostRecord
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)

OnLoss = Callable[[Notification, MessagingException], object]
"""A user's function. Called on the thread that notices the loss, which may be the one that publishes."""


def on_lost_record(on_failure: OnLoss) -> OnLostRecord:
    """Wrap a user's function: the result takes the record, and never raises."""

    def decode_and_call(record: Record, error: MessagingException) -> None:
        try:
            notification = codec.decode(record)
        except DecodeError:
            LOG.debug("A lost record of topic %s is not a notification", record.topic)
        else:
            on_failure(notification, error)

    # Around decoding too: a channel of another distribution may have made a record of anything.
    return lambda *lost: callbacks.call(LOG, "a lost notification", decode_and_call, *lost)
