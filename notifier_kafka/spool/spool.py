"""The spool: a disk between the publishers of a process and a bus that is slow or away.

While all is well records go to the bus, and the spool only remembers them until they are
acknowledged. When the bus's outbox is full, or the oldest of them waits too long, the
spool takes over: what is offered goes to the back of a file, and what the bus's client
still has is copied to the front of it, in case this process dies. Once the client is rid
of what it had, a thread sends what it could not and then the rest, in order. When there is
no more, records go to the bus again.

So of two records of a thread the first is always sent first, and nothing is sent twice but
what was under way when a process was killed.
"""

import contextlib
import logging
import pathlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from oslo_config import cfg

from notifier_kafka.config.settings import NotificationSettings
from notifier_kafka.contract import after_fork, threads
from notifier_kafka.contract.driver import Limits, OnSettled, Publisher, Record
from notifier_kafka.errors import (
    ConfigurationError,
    DeliveryFailed,
    LogUnusable,
    MessagingException,
    OutboxFull,
    TransportUnavailable,
)
from notifier_kafka.spool import spool_directory, spool_file
from notifier_kafka.spool.spool_file import SpoolFile
from notifier_kafka.spool.spool_files import Files
from notifier_kafka.spool.spool_forwarder import Forwarder
from notifier_kafka.spool.spool_pending import Pending
from notifier_kafka.stats.losses import Losses

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

COPY = 4_096
LOOK = 0.0025
SAID = 10.0  # seconds between two lines about where records go
DISK = 0.5  # seconds to write what is in memory, when sending took all the time
ADOPTION = 30.0  # seconds between looks for files of processes that died


class Terms(NamedTuple):
    """What the options say."""

    directory: pathlib.Path
    after: float
    age: float
    most: int
    memory: Limits


def opened(
    conf: cfg.ConfigOpts, settings: NotificationSettings, bus: Callable[[], Publisher], losses: Losses
) -> "Spool":
    """Make the spool that the options describe. Raises ``ConfigurationError`` when it cannot work."""
    if not settings.spool_dir:
        raise ConfigurationError("[notifications] on_full = spool needs a directory: set spool_dir")
    terms = Terms(
        spool_directory.named(settings.spool_dir),
        settings.spool_after,
        settings.spool_age,
        settings.spool_bytes,
        Limits(settings.outbox_records, settings.outbox_bytes),
    )
    opener = spool_file.opener(conf, terms.most)

    def make(owned: spool_directory.Owned) -> SpoolFile:
        return SpoolFile(owned, opener(owned.path), terms.memory, losses.lose)

    made = Spool(terms, make, bus, losses)
    made.prepare()
    return made


class Spool:
    """What the publishers of one transport share. Its thread copies, forwards and adopts."""

    spooling: bool
    _thread: threading.Thread | None

    def __init__(
        self,
        terms: Terms,
        make: Callable[[spool_directory.Owned], SpoolFile],
        bus: Callable[[], Publisher],
        losses: Losses,
    ) -> None:
        self._terms = terms
        self._make = make
        self._losses = losses
        self._forwarder = Forwarder(bus, terms.age, losses, self._meanwhile)
        self._beat = min(0.25, terms.after / 4)
        self._start_empty()
        _FORKED.add(self)

    def publisher(self, bus: Publisher) -> "SpooledPublisher":
        """Make the publisher that goes before one of the bus's."""
        return SpooledPublisher(self, bus)

    def prepare(self) -> None:
        """See that the directory can be written, and send what dead processes left in it."""
        spool_directory.prepare(self._terms.directory)
        # Files of others too: what they send may have been left by an earlier life of this process.
        if spool_directory.listing(self._terms.directory):
            with self._lock:
                self._start()

    def keep(self, record: Record) -> bool:
        """Take a record; False when the bus has its turn again. Raises ``OutboxFull``."""
        with self._lock:
            self._start()
            if not self.spooling:
                return False
            try:
                self._files.own().keep(record)
            except TransportUnavailable as error:
                why = error
            else:
                self.spooled += 1
                return True
        # Without the lock: the user's function may wait for a thread that publishes.
        self._losses.lose(record, why)
        return True

    def divert(self, why: str) -> None:
        """Let records go to the spool from now on."""
        with self._lock:
            if self.spooling:
                return
            self.spooling = True
        self._wake.set()
        self._tell(why)

    def unsafe(self) -> int:
        """Count the records that are neither on the bus nor on the disk."""
        with self._lock:
            file = self._files.current
        return self.pending.unsafe() + (file.unwritten(0.0) if file else 0)

    def flush(self, timeout: float) -> int:
        """Wait until all is on the bus or on the disk; return how many records are not."""
        deadline = time.monotonic() + timeout
        while (left := self.unsafe()) and time.monotonic() < deadline:
            time.sleep(LOOK)
        return left

    def waiting(self) -> int:
        """Count the records in this process's files that are not sent. Reads the disk."""
        with self._lock:
            files = list(self._files.files)
        total = 0
        for file in files:
            # One may go while they are counted.
            with contextlib.suppress(MessagingException):
                total += file.waiting().records
        return total

    def close(self, timeout: float) -> int:
        """Send what can be sent in time, and put the rest on the disk; return what is lost."""
        deadline = time.monotonic() + timeout
        while self._thread and (self.pending.records or self.spooling) and time.monotonic() < deadline:
            time.sleep(LOOK)
        self._stopped.set()
        self._wake.set()
        if self._thread:
            self._thread.join()
        if self.pending.records:
            self.divert("this process ends")
            self._copy()
        self.pending.end()
        left = self.flush(max(DISK, deadline - time.monotonic()))
        waiting = sum(file.leave() for file in (*self._files.files, *self._files.surplus))
        if waiting:
            LOG.warning(
                "%d notifications stay in the spool %s; the next process that publishes with it, or "
                "'notifier-kafka spool flush', sends them",
                waiting,
                self._terms.directory,
            )
        return left

    def start_afresh(self) -> None:
        """Begin anew in a child process: records, files and thread are the parent's."""
        for file in (*self._files.files, *self._files.surplus):
            file.abandon()
        self._start_empty()

    def _start_empty(self) -> None:
        # Reentrant: a signal handler may publish while its thread is in here.
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = None
        self.spooled = 0
        self.pending = Pending(self._terms.memory.records, self._losses, self.divert)
        terms = self._terms
        self._files = Files(terms.directory, terms.most, self._make, self._losses, self.pending.uncopy)
        # Until the thread has started, which keep() sees to.
        self.spooling = True
        self._looked = 0.0
        self._said = self._complained = -SAID
        self._told = False

    def _start(self) -> None:
        if self._thread is not None:
            return
        # First, for a signal handler that publishes comes through here too.
        self._thread = threading.Thread(target=self._run, name="notifier-kafka-spool", daemon=True)
        try:
            self._looked = time.monotonic()
            self._files.start()
            self.spooling = bool(self._files.files) or self._files.must_wait()
            threads.start_to_publish(self._thread)
        except MessagingException:
            self._thread = None
            raise
        except RuntimeError as error:  # such as a RecursionError: the caller's stack may be deep
            self._thread = None
            raise DeliveryFailed(f"the spool did not start: {error}") from error

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._meanwhile()
                self._files.give_up_surplus(self._meanwhile)
                if self.spooling and not self.pending.records and self._advance():
                    continue
            except LogUnusable as error:
                with self._lock:
                    self._files.set_aside(error)
            except MessagingException as error:
                self._complain(error)
            except Exception:
                LOG.exception("The spool %s: an error that it goes on from", self._terms.directory)
            self._wake.wait(self._beat)
            self._wake.clear()

    def _meanwhile(self) -> bool:
        """Do what cannot wait until the bus is back; tell whether to stop."""
        if self.pending.stuck(self._terms.after):
            self.divert(f"the bus has acknowledged nothing for {self._terms.after:g} s")
            self._copy()
        elif self.pending.failed():
            self._copy()
        if time.monotonic() - self._looked > ADOPTION:
            self._looked = time.monotonic()
            with self._lock:
                self.spooling = self._files.adopt() or self.spooling
        return self._stopped.is_set()

    def _advance(self) -> bool:
        """Forward some; tell whether there may be more to do at once."""
        with self._lock:
            file = self._files.first()
            if file is None:
                # What came in the meantime is the bus's, and before what comes now.
                self.spooling = bool(self.pending.records) or self._files.must_wait()
                if not self.spooling:
                    self._tell(None)
                return False
        kept, unwritten = file.kept, file.unwritten(0.0)
        # The numbers in another process's file are not those of this one.
        done = self.pending.done if file is self._files.current else ()
        if self._forwarder.forward(file, done):
            return True
        if unwritten:
            file.unwritten(self._beat)
            return True
        with self._lock:
            if self.pending.records or file.kept != kept:
                return True
            if file is self._files.current:
                self.pending.done.clear()
            self._files.take_out(file)
        file.remove()
        return True

    def _copy(self) -> None:
        """Put what the bus's client has on the disk too."""
        wanted = self.pending.uncopied()
        for start in range(0, len(wanted), COPY):
            records = wanted[start : start + COPY]
            try:
                with self._lock:
                    file = self._files.own()
                file.put_before(records)
            except MessagingException as error:
                self._complain(error)
                return
            with self._lock:
                self.spooled += len(records)
            self.pending.note_copies([number for number, _ in records])

    def _tell(self, why: str | None) -> None:
        """Log where records go from now on, and not each time when that changes often."""
        told, self._told = self._told, False
        if why is None and told:
            LOG.warning("Notifications go to the bus again")
        elif why is not None and time.monotonic() - self._said > SAID:
            self._said = time.monotonic()
            self._told = True
            LOG.warning("Notifications go to the spool %s: %s", self._terms.directory, why)

    def _complain(self, error: MessagingException) -> None:
        if time.monotonic() - self._complained > SAID:
            self._complained = time.monotonic()
            LOG.warning("The spool: %s", error)


class SpooledPublisher:
    """A ``Publisher`` before one of the bus's."""

    def __init__(self, spool: Spool, bus: Publisher) -> None:
        self._spool = spool
        self._bus = bus

    def offer(self, record: Record, on_settled: OnSettled | None = None) -> None:
        """Hand over to the bus, or else to the spool.

        Who wants to know what becomes of a record wants the bus's receipt: then it is the
        bus's or nobody's.
        """
        if on_settled is not None:
            self._bus.offer(record, on_settled)
            return
        spool = self._spool
        if spool.spooling and spool.keep(record):
            return
        pending = spool.pending
        number = pending.hold(record)
        try:
            self._bus.offer(record, partial(pending.settle, number))
        except OutboxFull as error:
            pending.drop(number)
            spool.divert(str(error))
            self.offer(record)
        except BaseException:
            pending.drop(number)
            raise

    def flush(self, timeout: float) -> int:
        return self._spool.flush(timeout)

    def close(self) -> None:
        self._bus.close()
