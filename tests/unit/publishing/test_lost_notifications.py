"""A user's function gets lost notifications, and nothing that it raises gets out."""

import logging
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DeliveryFailed, MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.publishing.lost_notifications import on_lost_record

RECORD = Record("notifications.info", b'{"priority": "INFO", "payload": 7}')
LOST = DeliveryFailed("lost")


def test_the_function_gets_the_notification_and_the_error() -> None:
    told: list[tuple[object, MessagingException]] = []

    def on_failure(notification: Notification, error: MessagingException) -> None:
        told.append((notification.payload, error))

    on_lost_record(on_failure)(RECORD, LOST)

    assert told == [(7, LOST)]


def test_a_record_that_is_not_a_notification_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []
    caplog.set_level(logging.DEBUG)

    on_lost_record(lambda *lost: told.append(lost))(Record("bytes", b"\xff"), LOST)

    assert told == []
    assert "A lost record of topic bytes is not a notification" in caplog.text


def test_an_error_of_the_function_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def on_failure(notification: Notification, error: MessagingException) -> None:
        raise KeyError("of the user's code")

    on_lost_record(on_failure)(RECORD, LOST)

    assert "A callback for a lost notification raised" in caplog.text
    assert "of the user's code" in caplog.text


def test_a_record_of_a_channel_that_does_not_know_bytes_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[object] = []
    text: Any = '{"priority": "INFO", "payload": 7}'

    on_lost_record(lambda *lost: told.append(lost))(Record("text", text), LOST)

    assert told == []
    assert "A callback for a lost notification raised" in caplog.text
