"""Raises an outage again with every poll until it is over.

The client libraries report it once in a while, and their polls in between return nothing, as if all were
well. A caller who logs outages would log again and again that the brokers are back.
"""

import time

from notifier_kafka.errors import TransportUnavailable

from ..clients.protocol import Consumer
from ..errors import AccessDenied
from ..properties import METADATA_AGE_SECONDS

ACL_GRANTED_SECONDS = 2 * METADATA_AGE_SECONDS  # so long without a refusal, and it counts as granted


class RepeatedOutage:
    """The last outage that a subscription raised. Never used by two threads at once."""

    def __init__(self) -> None:
        self._error: TransportUnavailable | None = None
        self._since = 0.0

    def begin(self, error: TransportUnavailable) -> None:
        """Remember an error that is about to be raised."""
        self._error = error
        self._since = time.monotonic()

    def end(self) -> None:
        """Forget it: records came."""
        self._error = None

    def check(self, consumer: Consumer | None) -> None:
        """Raise the error again unless it is over; ``consumer`` is None while there is no connection."""
        error = self._error
        if error is None:
            return
        denied = isinstance(error, AccessDenied) and time.monotonic() - self._since < ACL_GRANTED_SECONDS
        if denied or consumer is None or not consumer.is_connected():
            raise type(error)(str(error))
        self._error = None
