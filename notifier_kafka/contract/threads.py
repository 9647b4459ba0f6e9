"""Starts threads where that may fail: at the interpreter's exit, or at the system's limit."""

import threading

from notifier_kafka.errors import DeliveryFailed


def start(thread: threading.Thread, purpose: str) -> None:
    """Start a thread. If the system refuses, raise ``DeliveryFailed``: "no thread to ``purpose``"."""
    try:
        thread.start()
    except RuntimeError as error:
        raise DeliveryFailed(f"no thread to {purpose}: {error}") from error
