"""Starting threads where there may be none to be had: at the interpreter's exit, or at a limit."""

import threading

from notifier_kafka.errors import DeliveryFailed


def start(thread: threading.Thread, purpose: str) -> None:
    """Start a thread. Raises ``DeliveryFailed`` when the system has none for ``purpose``."""
    try:
        thread.start()
    except RuntimeError as error:
        raise DeliveryFailed(f"no thread to {purpose}: {error}") from error
