"""From a spool file to the bus: in order, and a position only when all before it arrived."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial

from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import Publisher, Receipt, Record
from notifier_kafka.errors import DeliveryFailed, MessagingException, OutboxFull, SpoolTooOld
from notifier_kafka.spool.spool_file import Chunk, SpoolFile
from notifier_kafka.spool.spool_pending import is_kept
from notifier_kafka.stats.losses import Losses

LOG = logging.getLogger(__name__)

# As many are sent again when this process is killed in the middle.
CHUNK = 2_000
FIRST_CHECK_SECONDS = 0.001
LONGEST_CHECK_SECONDS = 0.05
PAUSE = 0.5

Fate = Receipt | MessagingException | None


class Forwarder:
    """Sends what spool files hold. ``meanwhile`` is called now and then; True ends the wait."""

    def __init__(
        self, bus: Callable[[], Publisher], age: float, losses: Losses, meanwhile: Callable[[], bool]
    ) -> None:
        self._bus = bus
        self._age = age
        self._losses = losses
        self._meanwhile = meanwhile

    def forward(self, file: SpoolFile, done: Collection[int] = ()) -> bool:
        """Send the next chunk, but for the numbers that are ``done``; tell whether there was one.

        Returns early, without a position, when ``meanwhile`` says so.
        """
        chunk = file.read(CHUNK)
        if chunk is None:
            return False
        if chunk.lost:
            # The log deleted them as it wrote: nobody has them any more.
            self._losses.count("SpoolFull", chunk.lost, f"spool {file.path} exceeded spool_bytes")
        wanted = self._fresh(chunk, done)
        while wanted:
            fates = self._send(wanted)
            if None in fates:
                return True
            wanted = self._settle(wanted, fates)
            if wanted and self._pause(PAUSE):
                return True
        try:
            file.commit(chunk)
        except MessagingException as error:
            # A full disk, say. The worst that comes of it is that these are sent twice.
            LOG.warning("Forwarding goes on without noting how far it got: %s", error)
        return True

    def _fresh(self, chunk: Chunk, done: Collection[int]) -> list[Record]:
        since = time.time() - self._age
        fresh = []
        for number, record, written in chunk.entries:
            if number and number in done:
                continue
            if written >= since:
                fresh.append(record)
            else:
                self._losses.lose(record, SpoolTooOld("older than spool_age"))
        return fresh

    def _send(self, records: Sequence[Record]) -> list[Fate]:
        """Return what became of each; None where that is not known because the wait ended."""
        fates: list[Fate] = [None] * len(records)
        bus = self._bus()
        for index, record in enumerate(records):
            while True:
                try:
                    bus.offer(record, partial(fates.__setitem__, index))
                except OutboxFull:
                    if self._pause(LONGEST_CHECK_SECONDS):
                        return [*fates[:index], None]
                    continue
                except DeliveryFailed as error:
                    fates[index] = error
                break
        backoff = Backoff(FIRST_CHECK_SECONDS, LONGEST_CHECK_SECONDS)
        for index in range(len(records)):
            while fates[index] is None:
                if self._pause(backoff.pause()):
                    return fates
        return fates

    def _settle(self, records: Sequence[Record], fates: Sequence[Fate]) -> list[Record]:
        """Count what arrived and what cannot; return what is to be sent again."""
        again = []
        arrived = 0
        for record, fate in zip(records, fates, strict=True):
            if isinstance(fate, Receipt):
                arrived += 1
            elif isinstance(fate, MessagingException) and is_kept(fate):
                again.append(record)
            elif isinstance(fate, MessagingException):
                self._losses.lose(record, fate)
        self._losses.counters.add("forwarded", arrived)
        return again

    def _pause(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self._meanwhile()
