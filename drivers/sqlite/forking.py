"""Forking: no connection may be open while the process is copied.

In each process SQLite records which locks its connections hold on a file. A fork copies
the record, but not the locks: connections that the child opens on the same file would rely
on locks that nobody holds. Another process that closes the log would then believe that it
is the last one, and delete the WAL into which the child writes.

So a fork waits until no connection is in use and closes all of them; parent and child open
new ones. When a log stays in use for too long, the child never opens that file.
"""

import os
import threading
import time
import weakref
from typing import Protocol

from .opening import FileIdentity

TIMEOUT_SECONDS = 5.0
"""How long a fork waits at most, for all logs together."""


class Forkable(Protocol):
    """An object that holds connections and prepares for a fork."""

    def pause(self) -> None:
        """Lend no more connections."""

    def close_idle(self, wait: float) -> None:
        """Close the connections when they are no longer in use; wait at most ``wait`` seconds for that."""

    def resume(self) -> None:
        """Lend connections again, in the parent."""

    def start_afresh(self) -> set[FileIdentity]:
        """Forget all connections, in the child; return the files whose connections stay open."""


class _Fork:
    def __init__(self) -> None:
        # Held from before a fork until after it, so that no log is missed. Reentrant, because a
        # signal handler may fork while its thread forks.
        self.lock = threading.RLock()
        self.paused: list[list[Forkable]] = []


_fork = _Fork()
_members: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_unusable: set[FileIdentity] = set()
_left_open: set[FileIdentity] = set()


def join(member: Forkable) -> None:
    """Prepare ``member`` for each fork from now on."""
    with _fork.lock:
        _members.add(member)


def is_unusable(identity: FileIdentity | None) -> bool:
    """Tell whether the file was in use when this process was forked."""
    return identity in _unusable


def note_left_open(identity: FileIdentity) -> None:
    """Note that a connection to a file stays open until the process ends."""
    _left_open.add(identity)


def _before() -> None:
    _fork.lock.acquire()
    members = list(_members)
    _fork.paused.append(members)
    for member in members:
        member.pause()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    for member in members:
        member.close_idle(max(0.0, deadline - time.monotonic()))


def _after_in_parent() -> None:
    for member in _fork.paused.pop():
        member.resume()
    _fork.lock.release()


def _after_in_child() -> None:
    global _fork  # noqa: PLW0603 - the thread that holds the old lock does not exist here
    _fork = _Fork()
    _unusable.update(_left_open)
    for member in list(_members):
        _unusable.update(member.start_afresh())


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
