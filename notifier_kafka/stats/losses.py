"""Lost records: each is counted, logged, and told of once."""

from collections.abc import Callable

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.stats.counters import Counters

OnLostRecord = Callable[[Record, MessagingException], None]
"""Called in whichever thread finds out, which may be the one that publishes. Does not raise."""


class Losses:
    """Tells of each loss once."""

    def __init__(self, counters: Counters, on_lost: OnLostRecord | None = None) -> None:
        self.counters = counters
        self._on_lost = on_lost

    def lose(self, record: Record, error: MessagingException) -> None:
        """Give up a record; the error's name is the reason that it is counted by."""
        self.count(type(error).__name__, 1, f"topic {record.topic}: {error}")
        if self._on_lost is not None:
            self._on_lost(record, error)

    def count(self, reason: str, count: int, example: str) -> None:
        """Count losses of which nothing more is known."""
        self.counters.lose(reason, example, count)
