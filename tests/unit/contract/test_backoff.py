"""Pauses between retries."""

from notifier_kafka.contract.backoff import Backoff


def test_pauses_double_up_to_the_longest_and_begin_again() -> None:
    backoff = Backoff(0.5, 3.0)

    assert [backoff.pause() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.reset()
    assert backoff.pause() == 0.5
