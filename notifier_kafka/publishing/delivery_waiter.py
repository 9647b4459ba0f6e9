"""Waiting for the fate of records, for callers that want to know it."""

import threading
import time
from collections.abc import Callable

from notifier_kafka.contract.driver import Receipt
from notifier_kafka.errors import DeliveryFailed, MessagingException


class Waiter:
    """Collects what becomes of some records. ``settle`` is an ``OnSettled``."""

    def __init__(self) -> None:
        self._done = threading.Condition()
        self._open = 0
        self._receipts: list[Receipt] = []
        self._error: MessagingException | None = None

    def expect(self) -> None:
        """Announce one more record, before it is offered: it may settle at once."""
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
        """Wait until every record is settled; False when ``timeout`` came first."""
        deadline = time.monotonic() + timeout
        with self._done:
            while self._open:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._done.wait(left)
        return True

    def receipts(self, timeout: float, trouble: Callable[[], str | None] = lambda: None) -> list[Receipt]:
        """Return where everything landed. Raises ``DeliveryFailed`` when something did not.

        ``trouble`` is asked why when time is over.
        """
        settled = self.wait(timeout)
        if self._error is not None:
            if isinstance(self._error, DeliveryFailed):
                raise self._error
            raise DeliveryFailed(f"not delivered: {self._error}") from self._error
        if not settled:
            why = trouble()
            told = f" ({why})" if why else ""
            raise DeliveryFailed(f"not durable within {timeout:g} s; it may still arrive{told}")
        return self._receipts
