"""Reading as a member of a group."""

import logging
import sqlite3
import threading
import time
import weakref
from collections.abc import Sequence

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import Delivery, Positions
from notifier_kafka.errors import CommitRefused, LogUnusable, MessagingException

from . import blocks
from .logfile import LogFile, TurnMissed
from .membership import Claim, Membership, Terms
from .retention import Retention

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

# Other processes' writes are noticed by looking; those of this one wake the waiting up.
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.02
# Somebody who never waits would never get a turn beside busy writers.
_SHORTEST_TURN = 0.02


class LogSubscription:
    """A ``Subscription``. A thread renews its lease; it reads and claims in ``poll`` only."""

    _claims: list[Claim]
    _joined: bool
    _locked_since: float
    _stop_renewing: threading.Event

    def __init__(self, log: LogFile, terms: Terms, patience: float, retention: Retention) -> None:
        self._log = log
        self._terms = terms
        self._patience = patience
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
            except TurnMissed:
                # The caller has little time; only a log that stays locked is news.
                self._locked_since = self._locked_since or time.monotonic()
                if time.monotonic() - self._locked_since >= self._patience:
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
                f"{self._terms.group}; poll to learn what is owned now",
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
            # Another one meanwhile, if the poll that was under way began anew.
            self._stop_renewing.set()
            if not self._joined:
                return
            self._joined = False
            self._claims = []
            with self._log.writing() as connection:
                self._membership.leave(connection)

    def renew(self) -> None:
        """Prolong the lease and keep house, from the thread that does so.

        There may be nobody else who keeps it: the publishers may all have ended.
        """
        try:
            with self._log.writing(give_up=self._stop_renewing.is_set) as connection:
                self._membership.renew(connection)
        except MessagingException as error:
            if not self._closed:
                LOG.warning("The lease of a member of group %s is not renewed: %s", self._terms.group, error)
            return
        self._retention.tidy(give_up=self._stop_renewing.is_set)

    def start_afresh(self) -> None:
        """Become a new member; in a child process the parent goes on as the old one."""
        # Reentrant: a signal handler may close what its thread is polling.
        self._busy = threading.RLock()
        self._reader = blocks.Reader()
        self._locked_since = 0.0
        self._become_new()

    def _become_new(self) -> None:
        self._moves = self._log.moves
        self._membership = Membership(self._terms)
        self._joined = False
        self._claims = []
        self._next: dict[int, int] = {}
        self._look_at = 0.0
        self._stop_renewing = threading.Event()

    def _poll(self, limit: int, deadline: float) -> Sequence[Delivery]:
        while True:
            with self._log.reading(max(_SHORTEST_TURN, deadline - time.monotonic())) as connection:
                if self._moves != self._log.moves:
                    self._follow()
                while True:
                    version = _data_version(connection)
                    self._settle_claims(connection, deadline)
                    if found := self._fetch(connection, limit):
                        return found
                    if not self._await_change(connection, version, deadline):
                        break
            if self._closed or time.monotonic() >= deadline:
                return ()

    def _follow(self) -> None:
        """Become a member of the file that is at the path now; nothing known of the old one holds."""
        self._stop_renewing.set()
        if self._terms.start == "latest":
            # What is in it came after this member did.
            self._terms = self._terms._replace(start="earliest")
        self._become_new()

    def _settle_claims(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Trade partitions with the other members, when there is a reason to."""
        now = time.monotonic()
        due = now >= self._look_at
        if self._joined and self._membership.is_current(connection):
            if not due:
                return
            self._look_at = now + self._terms.session / 4
            if not self._membership.sees_dead(connection):
                return
        turn = max(_SHORTEST_TURN, deadline - now)
        # With the same connection: a fork that waits for it would keep a second one back.
        with self._log.changing(connection, turn, lambda: self._closed):
            claims = self._membership.rebalance(connection)
        held = {claim.id for claim in self._claims}
        self._next = {
            claim.id: self._next[claim.id] if claim.id in held else claim.position for claim in claims
        }
        self._claims = claims
        if not self._joined:
            self._joined = True
            _renew_in_background(self, self._stop_renewing, self._terms.session / 3)

    def _fetch(self, connection: sqlite3.Connection, limit: int) -> list[Delivery]:
        frames: list[tuple[Claim, blocks.Frame]] = []
        left = limit
        for claim in self._claims:
            position, end = self._next[claim.id], blocks.first_id(claim.id + 1)
            room = blocks.FRAME_BYTES
            # A frame may be shorter than what is there: it is of so many blocks as seemed enough.
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
        # Only now: had a later partition failed, nothing would have been handed over.
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
                self._terms.group,
                frame.start - position,
                *claim.partition,
            )
        self._next[claim.id] = frame.stop

    def _await_change(self, connection: sqlite3.Connection, version: int, deadline: float) -> bool:
        """Wait until the log changed or it is time to look; False to give the connection back."""
        pause = _FIRST_PAUSE
        while not self._closed and not self._log.wanted_back:
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= self._look_at or _data_version(connection) != version:
                return True
            with self._log.changed:
                self._log.changed.wait(min(pause, deadline - now))
            self._log.check_place(connection)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return False


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _renew_in_background(subscription: LogSubscription, stop: threading.Event, interval: float) -> None:
    # Only a weak reference: a subscription that is dropped unclosed must not live on.
    reference = weakref.ref(subscription)

    def run() -> None:
        while not stop.wait(interval):
            living = reference()
            if living is None:
                return
            living.renew()
            del living

    threading.Thread(target=run, name="notifier-kafka-lease", daemon=True).start()
