"""Calls of users' functions on threads of ours."""

import logging

import pytest

from notifier_kafka.contract import callbacks


@pytest.mark.parametrize("about", ["a record of topic t", ("a record of topic", "t")])
def test_a_callback_that_raises_is_logged_and_ends_nothing(
    about: str | tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    called: list[int] = []

    def fails(number: int) -> None:
        called.append(number)
        raise KeyError(number)

    callbacks.call(logging.getLogger("callbacks-under-test"), about, fails, 7)

    assert called == [7]
    assert "A callback for a record of topic t raised" in caplog.text
