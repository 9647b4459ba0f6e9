"""How a command waits for what comes: until it is told to stop, through outages."""

import signal
import time
from collections.abc import Sequence
from types import FrameType

from notifier_kafka.cli.exits import Exit
from notifier_kafka.cli.output import text
from notifier_kafka.contract.driver import Delivery, Subscription
from notifier_kafka.errors import TransportUnavailable

WAIT = 0.5  # seconds that a signal or a deadline may have to wait for a quiet log
START = 10.0  # seconds in which a log says what is wrong with it, or with our rights


class Stop:
    """Turns the first SIGTERM or Ctrl-C into a wish; the second is not waited for."""

    def __init__(self) -> None:
        self.wished = False
        self.exit_code = Exit.OK
        for number in (signal.SIGTERM, signal.SIGINT):
            # A shell starts a job in the background with Ctrl-C ignored; that is its choice.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._wish)

    def _wish(self, number: int, _frame: FrameType | None) -> None:
        self.wished = True
        self.exit_code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.OK
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Watch:
    """Polls, and sits out an outage that comes after a good start."""

    def __init__(self, subscription: Subscription, timeout: float | None) -> None:
        self._subscription = subscription
        self._timeout = timeout
        self._began = self._last = time.monotonic()
        self._reached = False
        self._outage: TransportUnavailable | None = None
        self.ended = False

    def poll(self, limit: int) -> Sequence[Delivery]:
        """Return what came, perhaps nothing; ``ended`` is set once --timeout has passed."""
        try:
            deliveries = self._subscription.poll(limit, self._patience())
        except TransportUnavailable as error:
            self._sit_out(error)
            deliveries = ()
        else:
            self._outage = None
        if deliveries:
            self._reached = True
            self._last = time.monotonic()
        elif self._timeout is not None and self._patience() <= 0:
            self.ended = True
            if self._outage is not None:
                raise self._outage
        return deliveries

    def _patience(self) -> float:
        if self._timeout is None:
            return WAIT
        return min(WAIT, max(0.0, self._last + self._timeout - time.monotonic()))

    def _sit_out(self, error: TransportUnavailable) -> None:
        # That a poll came back empty says nothing: a refusal may be on its way.
        if not self._reached and time.monotonic() - self._began < START:
            raise error
        if self._outage is None:
            text.note(f"{error}; waiting for it to come back")
        self._outage = error
        time.sleep(WAIT)
