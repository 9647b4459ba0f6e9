"""How the program ends on an error: one line, an exit code, and no complaint of the interpreter's."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from notifier_kafka.cli.exits import Exit, code
from notifier_kafka.cli.output import text


def report(error: BaseException, explain: Callable[[BaseException], str], *, debug: bool) -> int:
    """Say on stderr what was wrong; return the exit code for it."""
    found = code(error)
    _settle(sys.stdout)
    with contextlib.suppress(OSError):
        if debug:
            traceback.print_exception(error)
        if found not in (Exit.INTERRUPTED, Exit.BROKEN_PIPE):
            internal = found == Exit.INTERNAL and not isinstance(error, OSError)
            text.note(_unforeseen(error) if internal else explain(error))
    _settle(sys.stderr)
    return found


def _unforeseen(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}; --debug shows where it comes from"


def _settle(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        # The interpreter flushes again at exit and would complain about a reader that is
        # gone or a disk that is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
