"""A subscription: reads as a member of a group."""

import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import Sequence

from notifier_kafka.contract import after_fork, threads
from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import Delivery, Positions
from notifier_kafka.errors import CommitRefused, LogUnusable, MessagingException

from . import blocks
from .logfile import LockTimeout, LogFile
from .membership import Claim, MemberSettings, Membership
from .retention import Retention

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

# Writes of other processes are found by polling; a write of this process wakes up its own waiters.
_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02
# A poll without a timeout would never get the lock from busy writers.
_SHORTEST_TURN_SECONDS = 0.02


class LogSubscription:
    """A ``Subscription``. A thread renews its lease; only ``poll`` reads and claims partitions."""

    _claims: list[Claim]
    _joined: bool
    _locked_since: float
    _stop_renewing: threading.Event

    def __init__(
        self, log: LogFile, settings: MemberSettings, busy_timeout: float, retention: Retention
    ) -> None:
        self._log = log
        self._settings = settings
        self._busy_timeout = busy_timeout
        self._retention = retention
        self.start_afresh()
        self._closed = False
        _FORKED.add(self)

    def poll(self, limit: int, timeout: float) -> Sequence[Delivery]:
        deadline = time.monotonic() + timeout
        with self._busy:
            if self._closed:
                raise LogUnusable(f"log {self._log.path}: the subscription is closed; make a new one")
            try:
                found = self._poll(limit, deadline)
            except LockTimeout:
                # The caller's timeout may be short; only a log that stays locked is an error.
                self._locked_since = self._locked_since or time.monotonic()
                if time.monotonic() - self._locked_since >= self._busy_timeout:
                    raise
                return ()
            self._locked_since = 0.0
            return found

    def commit(self, positions: Positions) -> None:
        if not positions:
            return
        with self._busy:
            ids = {claim.partition: claim.id for claim in self._claims}
            lost = {partition for partition in positions if partition not in ids}
            if not lost and not self._closed:
                wanted = {
                    ids[partition]: min(offset, blocks.OFFSET_MASK) for partition, offset in positions.items()
                }
                with self._log.writing() as connection:
                    refused = self._membership.commit(connection, wanted)
                lost = {partition for partition in positions if ids[partition] in refused}
            elif self._closed:
                lost = set(positions)
        if lost:
            names = ", ".join(f"{topic}[{number}]" for topic, number in sorted(lost))
            raise CommitRefused(
                f"log {self._log.path}: {names} went to another member of group "
                f"{self._settings.group}; poll to learn what is owned now",
                frozenset((partition.topic, partition.number) for partition in lost),
            )

    def seek(self, positions: Positions) -> None:
        with self._busy:
            for claim in self._claims:
                if claim.partition in positions:
                    self._next[claim.id] = max(0, min(positions[claim.partition], blocks.OFFSET_MASK))

    def close(self) -> None:
        self._closed = True
        self._stop_renewing.set()
        with self._busy:
            # A poll that was under way may have made a new event.
            self._stop_renewing.set()
            if not self._joined:
                return
            self._joined = False
            self._claims = []
            with self._log.writing() as connection:
                self._membership.leave(connection)

    def renew(self) -> None:
        """Extend the lease and clean up; called from a thread of its own.

        Subscriptions clean up too, because there may be no publishers any more.
        """
        try:
            with self._log.writing(give_up=self._stop_renewing.is_set) as connection:
                self._membership.renew(connection)
        except MessagingException as error:
            if not self._closed:
                LOG.warning(
                    "The lease of a member of group %s was not renewed: %s", self._settings.group, error
                )
            return
        self._retention.clean_up(give_up=self._stop_renewing.is_set)

    def start_afresh(self) -> None:
        """Become a new member in a child process; the parent remains the old one."""
        # Reentrant, because a signal handler may close the subscription that its thread polls.
        self._busy = threading.RLock()
        self._reader = blocks.Reader()
        self._locked_since = 0.0
        self._become_new()

    def _become_new(self) -> None:
        self._times_moved = self._log.times_moved
        self._membership = Membership(self._settings)
        self._joined = False
        self._claims = []
        self._next: dict[int, int] = {}
        self._next_check = 0.0
        self._stop_renewing = threading.Event()

    def _poll(self, limit: int, deadline: float) -> Sequence[Delivery]:
        while True:
            with self._log.reading(max(_SHORTEST_TURN_SECONDS, deadline - time.monotonic())) as connection:
                if self._times_moved != self._log.times_moved:
                    self._join_moved_log()
                while True:
                    version = _data_version(connection)
                    self._rebalance_if_due(connection, deadline)
                    if found := self._fetch(connection, limit):
                        return found
                    if not self._await_change(connection, version, deadline):
                        break
            if self._closed or time.monotonic() >= deadline:
                return ()

    def _join_moved_log(self) -> None:
        """Join the group in the file that is at the path now; all that was known is of the old file."""
        self._stop_renewing.set()
        if self._settings.start == "latest":
            # The records in the new file came after this member joined.
            self._settings = self._settings._replace(start="earliest")
        self._become_new()

    def _rebalance_if_due(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Rebalance when members, claims or topics changed, or a member died."""
        now = time.monotonic()
        due = now >= self._next_check
        if self._joined and self._membership.is_current(connection):
            if not due:
                return
            self._next_check = now + self._settings.session / 4
            if not self._membership.has_dead_owner(connection):
                return
        turn = max(_SHORTEST_TURN_SECONDS, deadline - now)
        # With the same connection: a fork that waits for this one would block a second one.
        with self._log.transaction(connection, turn, lambda: self._closed):
            claims = self._membership.rebalance(connection)
        held = {claim.id for claim in self._claims}
        self._next = {
            claim.id: self._next[claim.id] if claim.id in held else claim.position for claim in claims
        }
        self._claims = claims
        if not self._joined:
            # Before the thread starts: a signal handler that calls close() meanwhile has to leave the group.
            self._joined = True
            try:
                _renew_in_background(self, self._stop_renewing, self._settings.session / 3)
            except MessagingException:
                # The next poll tries again.
                self._joined = False
                raise

    def _fetch(self, connection: sqlite3.Connection, limit: int) -> list[Delivery]:
        frames: list[tuple[Claim, blocks.Frame]] = []
        left = limit
        for claim in self._claims:
            position, end = self._next[claim.id], blocks.first_id(claim.id + 1)
            room = blocks.FRAME_BYTES
            # A frame may have fewer records than there are: its number of blocks is an estimate.
            while left:
                frame = self._reader.frame(connection, blocks.first_id(claim.id, position), end, left)
                if frame is None:
                    break
                frames.append((claim, frame))
                left -= len(frame.stamps)
                room -= frame.size
                position = frame.stop
                if room < frame.size:
                    break
        found = [
            delivery for claim, frame in frames for delivery in blocks.deliveries(frame, claim.partition)
        ]
        # Only now, because an error in a later partition would have lost the records of the others.
        for claim, frame in frames:
            self._advance(claim, frame)
        # The next poll begins with another partition, so that none starves.
        self._claims = self._claims[1:] + self._claims[:1]
        return found

    def _advance(self, claim: Claim, frame: blocks.Frame) -> None:
        position = self._next[claim.id]
        if frame.start > position:
            LOG.warning(
                "Group %s lost %d records of %s[%d]: they were deleted before they were read",
                self._settings.group,
                frame.start - position,
                *claim.partition,
            )
        self._next[claim.id] = frame.stop

    def _await_change(self, connection: sqlite3.Connection, version: int, deadline: float) -> bool:
        """Wait until the log changed or a check is due; return False to return the connection."""
        backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        while not self._closed and not self._log.is_fork_waiting:
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= self._next_check or _data_version(connection) != version:
                return True
            with self._log.changed:
                self._log.changed.wait(min(backoff.pause(), deadline - now))
            self._log.check_file(connection)
        return False


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _renew_in_background(subscription: LogSubscription, stop: threading.Event, interval: float) -> None:
    # A weak reference, so that a subscription that is dropped without close is freed.
    reference = weakref.ref(subscription)

    def run() -> None:
        while not stop.wait(interval):
            living = reference()
            if living is None:
                return
            living.renew()
            del living

    threads.start(threading.Thread(target=run, name="notifier-kafka-lease", daemon=True), "renew the lease")
