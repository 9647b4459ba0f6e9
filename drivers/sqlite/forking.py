"""Forking: no connection may be open while the process is copied.

SQLite keeps a book per process of the locks that its connections have on a file. A fork
copies the book, but not the locks: connections that the child opens on the same file
would rely on locks that nobody holds. Another process that closes the log would then take
itself for the last one and delete the WAL into which the child writes.

So a fork waits until no connection is in use, closes them all, and both sides open new
ones. When it cannot, because a log stays in use, the child refuses that file for good.
"""

import os
import threading
import time
import weakref
from typing import Protocol

from .opening import Place

WAIT = 5.0
"""Seconds that a fork waits at most, for all logs together."""


class Forkable(Protocol):
    """What takes part in a fork."""

    def pause(self) -> None:
        """Let nobody begin to use a connection."""

    def close_idle(self, wait: float) -> None:
        """Close the connections, once nobody uses them; at most ``wait`` seconds from now."""

    def resume(self) -> None:
        """Go on, in the parent."""

    def start_afresh(self) -> set[Place]:
        """Begin anew, in the child; return which files have connections that stay open."""


class _Fork:
    def __init__(self) -> None:
        # Held from before a fork until after it, so that no log is missed. Reentrant: a
        # signal handler may fork while its thread does.
        self.lock = threading.RLock()
        self.paused: list[list[Forkable]] = []


_fork = _Fork()
_members: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_spoilt: set[Place] = set()
_leaked: set[Place] = set()


def join(member: Forkable) -> None:
    """Have ``member`` asked at each fork from now on."""
    with _fork.lock:
        _members.add(member)


def is_spoilt(place: Place | None) -> bool:
    """Tell whether the file was in use when this process was forked."""
    return place in _spoilt


def note_leaked(place: Place) -> None:
    """Note that a connection to a file stays open to the end of the process."""
    _leaked.add(place)


def _before() -> None:
    _fork.lock.acquire()
    members = list(_members)
    _fork.paused.append(members)
    for member in members:
        member.pause()
    deadline = time.monotonic() + WAIT
    for member in members:
        member.close_idle(max(0.0, deadline - time.monotonic()))


def _after_in_parent() -> None:
    for member in _fork.paused.pop():
        member.resume()
    _fork.lock.release()


def _after_in_child() -> None:
    global _fork  # noqa: PLW0603 - the thread that may hold the old one's lock is not here
    _fork = _Fork()
    _spoilt.update(_leaked)
    for member in list(_members):
        _spoilt.update(member.start_afresh())


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
