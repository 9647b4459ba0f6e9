"""Publishing all or nothing: records wait in memory and are written in one SQLite transaction."""

import time
from collections.abc import Sequence

from notifier_kafka.contract.driver import Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException

from .appender import Appender


class LogTransaction:
    """A ``Transaction``: ``commit`` writes all of its records."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._records: list[Record] | None = []

    def offer(self, record: Record) -> None:
        self._open().append(record)

    def commit(self, timeout: float) -> list[Receipt]:
        records: Sequence[Record] = self._open()
        self._records = None
        deadline = time.monotonic() + timeout
        if not records:
            return []
        try:
            return list(self._appender.append(records, lambda: time.monotonic() >= deadline))
        except MessagingException as error:
            raise DeliveryFailed(f"transaction aborted: {error}") from error

    def abort(self) -> None:
        self._records = None

    def _open(self) -> list[Record]:
        if self._records is None:
            raise DeliveryFailed("the transaction has ended; begin another one")
        return self._records
