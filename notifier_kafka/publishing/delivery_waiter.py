"""Waiting until records are delivered or have failed."""

import threading
import time
from collections.abc import Callable

from notifier_kafka.contract.driver import Receipt
from notifier_kafka.errors import DeliveryFailed, MessagingException


class DeliveryWaiter:
    """Collects the receipts and errors of some records. ``settle`` is an ``OnSettled``."""

    def __init__(self) -> None:
        self._done = threading.Condition()
        self._open = 0
        self._receipts: list[Receipt] = []
        self._error: MessagingException | None = None

    def expect(self) -> None:
        """Announce one more record. Call it before the record is offered, which may settle it at once."""
        with self._done:
            self._open += 1

    def settle(self, fate: Receipt | MessagingException) -> None:
        with self._done:
            self._open -= 1
            if isinstance(fate, MessagingException):
                self._error = self._error or fate
            else:
                self._receipts.append(fate)
            if not self._open:
                self._done.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait until every record is settled. Return False when the timeout came first."""
        deadline = time.monotonic() + timeout
        with self._done:
            while self._open:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._done.wait(left)
        return True

    def receipts(self, timeout: float, trouble: Callable[[], str | None] = lambda: None) -> list[Receipt]:
        """Return the receipts of all records. Raises ``DeliveryFailed`` when a record has none.

        ``trouble`` is asked for the reason when the time is over.
        """
        settled = self.wait(timeout)
        if self._error is not None:
            if isinstance(self._error, DeliveryFailed):
                raise self._error
            raise DeliveryFailed(f"not delivered: {self._error}") from self._error
        if not settled:
            reason = trouble()
            suffix = f" ({reason})" if reason else ""
            raise DeliveryFailed(f"not durable within {timeout:g} s; it may still arrive{suffix}")
        return self._receipts
