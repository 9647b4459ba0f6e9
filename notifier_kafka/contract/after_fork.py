"""Objects whose threads, locks and queues are the parent's, and which begin anew in a child process."""

import ctypes
import os
import weakref
from typing import Protocol


class Forked(Protocol):
    def start_afresh(self) -> None:
        """Forget, in a child process, what is the parent's."""


def renewed() -> "weakref.WeakSet[Forked]":
    """Make a set, for whose members each child process calls ``start_afresh``."""
    members: weakref.WeakSet[Forked] = weakref.WeakSet()

    def start_all_afresh() -> None:
        for member in list(members):
            member.start_afresh()

    os.register_at_fork(after_in_child=start_all_afresh)
    return members


def never_free(thing: object) -> None:
    """Keep an object for ever: in a child process its destructor would wait for threads of the parent."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
