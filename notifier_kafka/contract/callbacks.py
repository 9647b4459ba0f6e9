"""Calls a user's function on a thread of ours: its error is logged, and the thread goes on."""

import logging
from collections.abc import Callable


def call(
    log: logging.Logger, about: str | tuple[str, ...], callback: Callable[..., object], *arguments: object
) -> None:
    """Call ``callback``. If it raises, log the error; ``about`` says what the call was for.

    The words of a tuple are joined only then: most callbacks are called for each record.
    """
    try:
        callback(*arguments)
    except Exception:
        log.exception("A callback for %s raised", about if isinstance(about, str) else " ".join(about))
