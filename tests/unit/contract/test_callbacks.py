"""Calls of users' functions on threads of ours."""

import logging

import pytest

from notifier_kafka.contract import callbacks


def test_a_callback_that_raises_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    called: list[int] = []

    def fails(number: int) -> None:
        called.append(number)
        raise KeyError(number)

    callbacks.call(logging.getLogger("callbacks-under-test"), "a record of topic t", fails, 7)

    assert called == [7]
    assert "A callback for a record of topic t raised" in caplog.text
