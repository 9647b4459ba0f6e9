"""What the bus's client has taken and the bus has not acknowledged."""

import itertools
import threading
import time
from collections.abc import Callable, Collection

from notifier_kafka.contract.driver import Receipt, Record
from notifier_kafka.errors import DeliveryBarred, MessagingException
from notifier_kafka.stats.losses import Losses


class Pending:
    """Numbered records, oldest first.

    One leaves when it is acknowledged, lost, or when its client has given it up and a copy
    is in the spool. A copy whose number is in ``done`` need not be sent. A copy that had to
    make room is made again only when the client gives up its record: until then it would take
    the room of records that nobody else has.
    """

    def __init__(self, most: int, losses: Losses, divert: Callable[[str], None]) -> None:
        self._most = most
        self._losses = losses
        self._divert = divert
        self.records: dict[int, Record] = {}
        self.done: set[int] = set()
        self._numbers = itertools.count(1)
        # Reentrant: a callback may come to a thread of the user's, and so may a signal.
        self._lock = threading.RLock()
        self._copied: set[int] = set()
        self._being_copied: set[int] = set()
        # Of those copied, the ones whose copies were deleted.
        self._dropped: set[int] = set()
        self._failed: set[int] = set()
        self._oldest: int | None = None
        self._since = 0.0
        self._ended = False

    def hold(self, record: Record) -> int:
        """Take a record, before it is offered; return its number."""
        number = next(self._numbers)
        self.records[number] = record
        return number

    def drop(self, number: int) -> None:
        """Let go of a record that the client refused; it is offered anew."""
        with self._lock:
            self.records.pop(number, None)
            if number in self._copied:
                self._retire(number)

    def settle(self, number: int, outcome: Receipt | MessagingException) -> None:
        """Learn what became of a record."""
        if not isinstance(outcome, MessagingException):
            # Without the lock, for it is done for every record.
            self.records.pop(number, None)
            if number in self._copied:
                self._retire(number)
        elif number in self.records and not (self._ended and self._is_safe(number)):
            self._fail(number, outcome)

    def unsafe(self) -> int:
        """Count what is in memory alone."""
        return max(0, len(self.records) - len(self._copied) + len(self._dropped))

    def stuck(self, seconds: float) -> bool:
        """Tell whether the oldest has been the oldest for that long. To be asked often."""
        oldest = next(iter(self.records.copy()), None) if self.records else None
        now = time.monotonic()
        if oldest is None or oldest != self._oldest:
            self._oldest, self._since = oldest, now
        return now - self._since >= seconds

    def failed(self) -> bool:
        """Tell whether a client has given up something that is not copied yet."""
        return bool(self._failed)

    def uncopied(self) -> list[tuple[int, Record]]:
        """List what is in memory alone, oldest first."""
        with self._lock:
            found = [entry for entry in self.records.copy().items() if entry[0] not in self._copied]
            self._being_copied = {number for number, _ in found}
        return found

    def note_copies(self, numbers: Collection[int]) -> None:
        """Learn that these are on the disk as well."""
        with self._lock:
            written = self._being_copied.intersection(numbers)
            self._being_copied -= written
            self._copied |= written
            # Acknowledged while they were being written.
            for number in [number for number in written if number not in self.records]:
                self._retire(number)
            self._release(numbers)

    def uncopy(self, number: int) -> bool:
        """Learn that a copy was deleted; tell whether that is no loss: the client has it, or the bus."""
        with self._lock:
            if number in self._failed:
                # Deleted by the transaction that wrote it: there is no room for it at all.
                self._failed.discard(number)
                self._being_copied.discard(number)
                self.records.pop(number, None)
                return False
            if number in self.records:
                self._copied.add(number)
                self._dropped.add(number)
                if number not in self.records:  # acknowledged meanwhile
                    self._retire(number)
            # In the order in which it goes from one to the next.
            return any(
                number in where for where in (self.records, self._being_copied, self._copied, self.done)
            )

    def end(self) -> None:
        """Take no failure for a loss any more where there is a copy: the clients are being closed."""
        self._ended = True

    def _is_safe(self, number: int) -> bool:
        return number in self._copied and number not in self._dropped

    def _retire(self, number: int) -> None:
        """Note that the copy of a record that is gone need not be sent."""
        # First this: who asks meanwhile finds the number in one of them.
        self.done.add(number)
        self._copied.discard(number)
        self._dropped.discard(number)

    def _fail(self, number: int, error: MessagingException) -> None:
        if not is_kept(error) or self._ended or len(self._failed) >= self._most:
            # Before it goes: who sees that nothing is pending must have heard of it.
            self._losses.lose(self.records[number], error)
            self.records.pop(number)
            self._retire(number)
            return
        with self._lock:
            if number in self._dropped:
                self._dropped.discard(number)
                self._copied.discard(number)
            self._failed.add(number)
            self._release([number])
        self._divert(str(error))

    def _release(self, numbers: Collection[int]) -> None:
        for number in self._failed.intersection(numbers) & self._copied:
            self._failed.discard(number)
            self._copied.discard(number)
            self.records.pop(number, None)


def is_kept(error: MessagingException) -> bool:
    """Tell whether a spool keeps what failed so: the fault is not the record's."""
    return error.retriable or isinstance(error, DeliveryBarred)
