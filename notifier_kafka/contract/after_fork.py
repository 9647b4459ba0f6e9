"""Fork safety: objects that begin anew in a child process, where their threads do not run."""

import ctypes
import os
import weakref
from typing import Protocol


class Forked(Protocol):
    def start_afresh(self) -> None:
        """Replace, in a child process, the locks, queues and threads of the parent."""


def renewed() -> "weakref.WeakSet[Forked]":
    """Return a set of weak references. Each child process calls ``start_afresh`` on its members."""
    members: weakref.WeakSet[Forked] = weakref.WeakSet()

    def start_all_afresh() -> None:
        for member in list(members):
            member.start_afresh()

    os.register_at_fork(after_in_child=start_all_afresh)
    return members


def never_free(thing: object) -> None:
    """Keep an object for ever. In a child process its destructor would wait for threads of the parent."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
