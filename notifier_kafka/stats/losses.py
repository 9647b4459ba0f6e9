"""Lost records: each is counted, logged, and reported to the user's function once."""

from collections.abc import Callable

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.stats.counters import Counters

OnLostRecord = Callable[[Record, MessagingException], None]
"""Called on the thread that notices the loss, which may be the one that publishes. Must not raise."""


class Losses:
    """Reports each loss once."""

    def __init__(self, counters: Counters, on_lost: OnLostRecord | None = None) -> None:
        self.counters = counters
        self._on_lost = on_lost

    def lose(self, record: Record, error: MessagingException) -> None:
        """Give up a record. It is counted under the name of the error's class."""
        self.count(type(error).__name__, 1, f"topic {record.topic}: {error}")
        if self._on_lost is not None:
            self._on_lost(record, error)

    def count(self, reason: str, count: int, example: str) -> None:
        """Count losses whose records are not known."""
        self.counters.lose(reason, example, count)
