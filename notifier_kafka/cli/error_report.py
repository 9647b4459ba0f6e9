"""How the program ends on an error: with one line, an exit code, and no traceback at exit."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from notifier_kafka.cli.exits import Exit, exit_code
from notifier_kafka.cli.output import text


def report(error: BaseException, explain: Callable[[BaseException], str], *, debug: bool) -> int:
    """Print what is wrong on stderr; return the exit code for it."""
    code = exit_code(error)
    _flush_or_discard(sys.stdout)
    with contextlib.suppress(OSError):
        if debug:
            traceback.print_exception(error)
        if code not in (Exit.INTERRUPTED, Exit.BROKEN_PIPE):
            is_internal = code == Exit.INTERNAL and not isinstance(error, OSError)
            text.note(_describe_internal(error) if is_internal else explain(error))
    _flush_or_discard(sys.stderr)
    return code


def _describe_internal(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}; --debug shows the traceback"


def _flush_or_discard(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        # The interpreter flushes again at exit. It would print an error if the reader is gone
        # or the disk is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
