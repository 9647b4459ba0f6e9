"""Remembers that the brokers are away, between the errors that the client libraries raise of it.

They say it once in a while, and their polls in between come back empty as if all were well.
Whoever logs what ``poll`` does would log that the brokers are back, again and again.
"""

import time

from notifier_kafka.errors import TransportUnavailable

from ..clients.protocol import Consumer
from ..errors import AccessDenied
from ..properties import METADATA_AGE

QUIET = 2 * METADATA_AGE  # seconds without a refusal until an ACL counts as granted


class Outage:
    """What a subscription last raised. Never used by two threads at once."""

    def __init__(self) -> None:
        self._error: TransportUnavailable | None = None
        self._since = 0.0

    def begin(self, error: TransportUnavailable) -> None:
        """Remember an error that is about to be raised."""
        self._error = error
        self._since = time.monotonic()

    def end(self) -> None:
        """Forget it: something came."""
        self._error = None

    def look(self, consumer: Consumer | None) -> None:
        """Raise the error again unless it is over; ``consumer`` is None while there is no connection."""
        error = self._error
        if error is None:
            return
        denied = isinstance(error, AccessDenied) and time.monotonic() - self._since < QUIET
        if denied or consumer is None or not consumer.reaches():
            raise type(error)(str(error))
        self._error = None
