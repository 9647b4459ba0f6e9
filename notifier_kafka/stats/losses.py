"""What becomes of a notification that is lost: it is counted, logged, and its user is told."""

import logging
from collections.abc import Callable

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError, MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.stats.counters import Accounts
from notifier_kafka.wire import codec

LOG = logging.getLogger(__name__)

OnLoss = Callable[[Notification, MessagingException], object]
"""A user's function. Called in whichever thread knows, which may be the one that publishes."""


class Losses:
    """Tells of each loss once."""

    def __init__(self, accounts: Accounts, on_failure: OnLoss | None = None) -> None:
        self.accounts = accounts
        self._on_failure = on_failure

    def lose(self, record: Record, error: MessagingException) -> None:
        """Give up a record; the error's name is the reason that it is counted by."""
        self.count(type(error).__name__, 1, f"topic {record.topic}: {error}")
        if self._on_failure is None:
            return
        try:
            self._on_failure(codec.decode(record), error)
        except DecodeError:
            LOG.debug("A lost record of topic %s is no notification", record.topic)
        except Exception:
            # The user's code on a thread of ours: its error must not end publishing.
            LOG.exception("The on_failure of a transport raised")

    def count(self, reason: str, count: int, example: str) -> None:
        """Count losses of which nothing more is known."""
        self.accounts.lose(reason, example, count)
