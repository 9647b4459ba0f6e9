"""Starting threads."""

import threading

import pytest

from notifier_kafka.contract import threads
from notifier_kafka.errors import DeliveryFailed, MessagingException


def test_a_thread_that_cannot_start_is_one_clear_error() -> None:
    started = threading.Thread(target=lambda: None)
    threads.start(started, "listen")
    started.join()

    # A thread can start only once, and a refusal of the system is the same RuntimeError.
    with pytest.raises(MessagingException, match="no thread to listen: ") as caught:
        threads.start(started, "listen")
    assert not isinstance(caught.value, DeliveryFailed)
    with pytest.raises(DeliveryFailed, match="no thread to publish from: "):
        threads.start_to_publish(started)
