"""Policies that are decided once: backoff, record sizes, users' callbacks, threads, misspelt names."""

import logging
import threading

import pytest

from notifier_kafka.contract import callbacks, did_you_mean, record_size, threads
from notifier_kafka.contract.backoff import Backoff
from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DeliveryFailed


def test_backoff_doubles_up_to_its_limit_and_begins_again() -> None:
    backoff = Backoff(0.5, 3.0)

    assert [backoff.pause() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert backoff.pause() == 0.5


@pytest.mark.parametrize(
    ("record", "size"),
    [
        (Record("topic", None, None, ()), 0),
        (Record("topic", b"12345", None, ()), 5),
        (Record("topic", b"12345", b"key", (("name", b"content"),)), 5 + 3 + 4 + 7),
    ],
)
def test_a_size_is_that_of_value_key_and_headers(record: Record, size: int) -> None:
    assert record_size.size_in_bytes(record) == size


def test_a_callback_that_raises_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    called: list[int] = []

    def fails(number: int) -> None:
        called.append(number)
        raise KeyError(number)

    callbacks.call(logging.getLogger("callbacks-under-test"), "a record of topic t", fails, 7)

    assert called == [7]
    assert "A callback for a record of topic t raised" in caplog.text


def test_a_thread_that_cannot_be_had_is_one_clear_error() -> None:
    started = threading.Thread(target=lambda: None)
    threads.start(started, "publish from")
    started.join()

    # A thread starts once; the system's refusal is the same RuntimeError.
    with pytest.raises(DeliveryFailed, match="no thread to publish from: "):
        threads.start(started, "publish from")


@pytest.mark.parametrize(
    ("name", "hint", "all_told"),
    [
        ("topic", "did you mean topics?", "did you mean topics? known are retry, topics"),
        (7, "nothing like it", "known are retry, topics"),
    ],
)
def test_a_misspelt_name_gets_a_hint_and_the_choices(name: object, hint: str, all_told: str) -> None:
    known = ["retry", "topics"]

    assert did_you_mean.hint(name, known, "nothing like it") == hint
    assert did_you_mean.hint_and_choices(name, known) == all_told
    assert did_you_mean.hint_and_choices(name, [], "installed are") == "installed are none"
