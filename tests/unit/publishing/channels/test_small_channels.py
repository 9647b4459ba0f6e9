"""The channels log, noop and test."""

import datetime
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.errors import EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import ordering_keys
from notifier_kafka.publishing.channels import channel, log, noop, test
from notifier_kafka.publishing.transport import NotificationTransport, get_notification_transport

HOW = channel.Sending(retry=3, key=ordering_keys.load("none"))


@pytest.fixture
def transport() -> Iterator[NotificationTransport]:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    transport = get_notification_transport(conf, "sqlite://")
    yield transport
    transport.cleanup()


def make(kind: type[channel.Channel], transport: NotificationTransport) -> channel.Channel:
    return kind(transport.conf, ["notifications"], transport)


def notification(**changes: Any) -> Notification:
    plain = Notification("m-1", "host1", "compute.create", "INFO", {"a": 1}, "2026-01-01 00:00:00", {"c": 2})
    return plain._replace(**changes)


@pytest.mark.parametrize(
    ("priority", "level"),
    [
        ("AUDIT", logging.INFO),
        ("DEBUG", logging.DEBUG),
        ("INFO", logging.INFO),
        ("WARN", logging.WARNING),
        ("ERROR", logging.ERROR),
        ("CRITICAL", logging.CRITICAL),
        ("SAMPLE", logging.INFO),
    ],
)
def test_log_names_the_logger_for_the_event_and_the_level_for_the_priority(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture, priority: str, level: int
) -> None:
    caplog.set_level(logging.DEBUG)
    make(log.LogChannel, transport).send([notification(priority=priority)], HOW)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("oslo.messaging.notification.compute.create", level)
    assert json.loads(record.getMessage()) == {
        "message_id": "m-1",
        "publisher_id": "host1",
        "event_type": "compute.create",
        "priority": priority,
        "payload": {"a": 1},
        "timestamp": "2026-01-01 00:00:00",
    }


def test_log_masks_secrets_and_converts_as_the_bus_does(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    payload = {"servers": [{"adminPass": "s3cret"}], "at": datetime.date(2026, 1, 2)}
    caplog.set_level(logging.INFO)
    make(log.LogChannel, transport).send([notification(payload=payload)], HOW)
    assert "s3cret" not in caplog.text
    assert json.loads(caplog.messages[0])["payload"] == {
        "servers": [{"adminPass": "***"}],
        "at": "2026-01-02",
    }


@pytest.mark.parametrize("text", ["a\nERROR forged", "a\r\n", "a\u2028b", "a\x1b[31m", "100% %s"])
def test_log_writes_one_line_whatever_was_sent(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    caplog.set_level(logging.INFO)
    make(log.LogChannel, transport).send([notification(event_type=text, payload=text)], HOW)
    (record,) = caplog.records
    line = f"{record.name} {record.getMessage()}"
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(record.getMessage())["payload"] == text


@pytest.mark.parametrize("event_type", ["a." * 4000, "a." * 30 + "a", "a" * 5000])
def test_log_makes_no_logger_for_a_name_that_nobody_configures(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture, event_type: str
) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger(log.LOGGER)
    before = len(logging.root.manager.loggerDict)
    make(log.LogChannel, transport).send([notification(event_type=event_type)], HOW)
    (record,) = caplog.records
    assert record.name == "oslo.messaging.notification"
    assert json.loads(record.getMessage())["event_type"] == event_type
    assert len(logging.root.manager.loggerDict) == before


def test_log_makes_a_thousand_loggers_and_no_more(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those of other tests do not count here, nor these there.
    monkeypatch.setattr(log, "_made", set())
    caplog.set_level(logging.INFO)
    logging.getLogger("oslo.messaging.notification.configured")
    numbered = [notification(event_type=f"made.up-{number}") for number in range(log.MAX_LOGGERS + 2)]
    again = [numbered[0], notification(event_type="configured")]
    make(log.LogChannel, transport).send(numbered + again, HOW)
    names = [record.name.removeprefix("oslo.messaging.notification") for record in caplog.records]
    made = [f".made.up-{number}" for number in range(log.MAX_LOGGERS)]
    assert names == [*made, "", "", ".made.up-0", ".configured"]
    there = logging.root.manager.loggerDict
    assert "oslo.messaging.notification.made.up-999" in there
    assert "oslo.messaging.notification.made.up-1000" not in there


def test_log_without_an_event_type(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    make(log.LogChannel, transport).send([notification(event_type=None)], HOW)
    assert [record.name for record in caplog.records] == ["oslo.messaging.notification"]


def test_log_refuses_what_has_no_form(
    transport: NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(EncodeError):
        make(log.LogChannel, transport).send([notification(payload=object())], HOW)


def test_noop_does_nothing(transport: NotificationTransport, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    make(noop.NoopChannel, transport).send([notification(payload=object())], HOW)
    assert caplog.records == []
    assert transport.flush(0) == 0


def test_test_records_until_reset(transport: NotificationTransport) -> None:
    test.reset()
    sent = notification()
    make(test.TestChannel, transport).send([sent, sent._replace(priority="WARN")], HOW)
    ((context, message, priority, retry), (_, _, second, _)) = test.NOTIFICATIONS
    assert (context, priority, retry, second) == ({"c": 2}, "INFO", 3, "WARN")
    assert message == {
        "message_id": "m-1",
        "publisher_id": "host1",
        "event_type": "compute.create",
        "priority": "INFO",
        "payload": {"a": 1},
        "timestamp": "2026-01-01 00:00:00",
    }
    test.reset()
    assert test.NOTIFICATIONS == []
