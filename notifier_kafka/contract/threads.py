"""Starts threads where that may fail: at the interpreter's exit, or at the system's limit."""

import threading

from notifier_kafka.errors import DeliveryFailed, MessagingException


def start(
    thread: threading.Thread, purpose: str, error: type[MessagingException] = MessagingException
) -> None:
    """Start a thread. If the system refuses, raise ``error``: "no thread to ``purpose``"."""
    try:
        thread.start()
    except RuntimeError as reason:
        raise error(f"no thread to {purpose}: {reason}") from reason


def start_to_publish(thread: threading.Thread, purpose: str = "publish from") -> None:
    """Start a thread that a call to publish needs. If the system refuses, that call fails."""
    start(thread, purpose, DeliveryFailed)
