"""Starting threads."""

import threading

import pytest

from notifier_kafka.contract import threads
from notifier_kafka.errors import DeliveryFailed


def test_a_thread_that_cannot_start_is_one_clear_error() -> None:
    started = threading.Thread(target=lambda: None)
    threads.start(started, "publish from")
    started.join()

    # A thread can start only once, and a refusal of the system is the same RuntimeError.
    with pytest.raises(DeliveryFailed, match="no thread to publish from: "):
        threads.start(started, "publish from")
