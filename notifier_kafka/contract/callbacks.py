"""Calling a user's function on a thread of ours: its error is logged and ends nothing."""

import logging
from collections.abc import Callable


def call(log: logging.Logger, about: str, callback: Callable[..., object], *arguments: object) -> None:
    """Call ``callback``; when it raises, log that the callback ``about`` something raised."""
    try:
        callback(*arguments)
    except Exception:
        log.exception("A callback for %s raised", about)
