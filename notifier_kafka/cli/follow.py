"""How a command follows the log: until it is stopped, and through outages."""

import signal
import time
from collections.abc import Sequence
from types import FrameType

from notifier_kafka.cli.exits import Exit
from notifier_kafka.cli.output import text
from notifier_kafka.contract.driver import Delivery, Subscription
from notifier_kafka.errors import TransportUnavailable

POLL_SECONDS = 0.5  # the longest that a signal or --timeout waits for a quiet log
STARTUP_SECONDS = 10.0  # within these an outage is an error: the address or the login may be wrong


class StopSignal:
    """Records the first SIGTERM or Ctrl-C, so that the command can finish. A second one ends it at once."""

    def __init__(self) -> None:
        self.received = False
        self.exit_code = Exit.OK
        for number in (signal.SIGTERM, signal.SIGINT):
            # A shell starts a background job with Ctrl-C ignored. It stays ignored.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._receive)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received = True
        self.exit_code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.OK
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Poller:
    """Polls a subscription. After a good start it waits out an outage of the log."""

    def __init__(self, subscription: Subscription, timeout: float | None) -> None:
        self._subscription = subscription
        self._timeout = timeout
        self._started = self._last_delivery = time.monotonic()
        self._has_delivered = False
        self._outage: TransportUnavailable | None = None
        self.timed_out = False

    def poll(self, limit: int) -> Sequence[Delivery]:
        """Return what arrived, perhaps nothing. Sets ``timed_out`` once --timeout has passed."""
        try:
            deliveries = self._subscription.poll(limit, self._poll_seconds())
        except TransportUnavailable as error:
            self._wait_out(error)
            deliveries = ()
        else:
            self._outage = None
        if deliveries:
            self._has_delivered = True
            self._last_delivery = time.monotonic()
        elif self._timeout is not None and self._poll_seconds() <= 0:
            self.timed_out = True
            if self._outage is not None:
                raise self._outage
        return deliveries

    def _poll_seconds(self) -> float:
        if self._timeout is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, max(0.0, self._last_delivery + self._timeout - time.monotonic()))

    def _wait_out(self, error: TransportUnavailable) -> None:
        # An empty poll does not prove a good start: the broker's refusal may not have arrived yet.
        if not self._has_delivered and time.monotonic() - self._started < STARTUP_SECONDS:
            raise error
        if self._outage is None:
            text.note(f"{error}; waiting for it to come back")
        self._outage = error
        time.sleep(POLL_SECONDS)
