"""The notifier, over a private SQLite log."""

import datetime
import decimal
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from notifier_kafka.contract.driver import Receipt
from notifier_kafka.errors import DriverNotFound, EncodeError, MessageDeliveryFailure
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.publishing.channels import channel
from notifier_kafka.publishing.channels import test as recording
from notifier_kafka.wire import codec
from notifier_kafka.wire.serializer import NoOpSerializer
from tests.shared.log_lock import locked


class Context:
    """A request context with a secret, redacted as oslo.context does."""

    def __init__(self, **members: Any) -> None:
        self.members = members

    def redacted_copy(self) -> "Context":
        return Context(**{name: value for name, value in self.members.items() if name != "auth_token"})

    def to_dict(self) -> dict[str, Any]:
        return dict(self.members)


def published(bus: transport.NotificationTransport, topic: str = "notifications.info") -> list[Notification]:
    assert bus.flush(30) == 0
    return [
        codec.decode(delivery.record)
        for span in bus.driver.spans([topic])
        for delivery in bus.driver.read(span)
    ]


@pytest.mark.parametrize(
    ("method", "priority"),
    [
        ("audit", "AUDIT"),
        ("debug", "DEBUG"),
        ("info", "INFO"),
        ("warn", "WARN"),
        ("warning", "WARN"),
        ("error", "ERROR"),
        ("critical", "CRITICAL"),
        ("sample", "SAMPLE"),
    ],
)
def test_each_method_sends_at_its_priority(
    notifier_transport: transport.NotificationTransport, method: str, priority: str
) -> None:
    sender = notifier.Notifier(notifier_transport, "host1")
    assert getattr(sender, method)({}, "thing.done", {"a": 1}) is None
    (sent,) = published(notifier_transport, f"notifications.{priority.lower()}")
    assert sent[1:5] == ("host1", "thing.done", priority, {"a": 1})


def test_topics_come_from_the_argument_or_the_configuration(
    notifier_conf: cfg.ConfigOpts, notifier_transport: transport.NotificationTransport
) -> None:
    notifier.Notifier(notifier_transport, topics=["one", "two"]).info({}, "e", 1)
    assert [len(published(notifier_transport, f"{topic}.info")) for topic in ("one", "two")] == [1, 1]


def test_no_topics_are_none_and_not_those_of_the_configuration(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport, topics=[])
    assert sender.prepare(wait=True).info({}, "e", 1) == []
    assert published(notifier_transport) == []


def test_two_channels_send_twice(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("driver", ["messaging", "messagingv2"], group="notifications")
    bus = transport.get_notification_transport(notifier_conf)
    notifier.Notifier(bus).info({}, "e", 1)
    first, second = published(bus)
    assert first == second
    bus.cleanup()


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (None, {}),
        ({"auth_token": "secret"}, {}),
        (Context(user="me", auth_token="secret"), {"user": "me"}),
    ],
)
def test_no_credential_of_a_context_reaches_the_bus(
    notifier_transport: transport.NotificationTransport, context: Any, expected: dict[str, Any]
) -> None:
    notifier.Notifier(notifier_transport).info(context, "e", {})
    assert published(notifier_transport)[0].context == expected


def test_a_context_that_cannot_be_redacted_is_left_out_and_said(
    notifier_transport: transport.NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    notifier.Notifier(notifier_transport).info("token-in-a-string", "e", {})
    assert published(notifier_transport)[0].context == {}
    assert "has no redacted_copy()" in caplog.text
    assert "token-in-a-string" not in caplog.text


def test_the_serializer_sees_the_context_and_the_redacted_one(
    notifier_transport: transport.NotificationTransport,
) -> None:
    class Doubling(NoOpSerializer):
        def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
            return [ctxt.members["auth_token"] == "secret", entity * 2]

        def serialize_context(self, ctxt: Any) -> Any:
            return ctxt.to_dict() | {"serialized": True}

    sender = notifier.Notifier(notifier_transport, serializer=Doubling())
    sender.info(Context(user="me", auth_token="secret"), "e", 21)
    (sent,) = published(notifier_transport)
    assert sent.payload == [True, 42]
    assert sent.context == {"user": "me", "serialized": True}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"when": datetime.datetime(2026, 11, 18, 7, 50, tzinfo=datetime.UTC)}, None),
        ({"set": {1}}, {"set": [1]}),
        ({"decimal": decimal.Decimal("1.50")}, {"decimal": "1.50"}),
        ({"nan": float("nan")}, {"nan": None}),
        ({1: 2**80}, {"1": 2**80}),
    ],
)
def test_payloads_are_converted(
    notifier_transport: transport.NotificationTransport, payload: Any, expected: Any
) -> None:
    notifier.Notifier(notifier_transport).info({}, "e", payload)
    (sent,) = published(notifier_transport)
    assert sent.payload == expected if expected else isinstance(sent.payload["when"], str)


def test_what_has_no_form_is_refused_in_the_callers_stack_and_nothing_is_written(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport)
    with pytest.raises(EncodeError, match=r"payload\.a\[1\]") as caught:
        sender.info({}, "e", {"secret": "s3cret", "a": [1, threading.Lock()]})
    assert "s3cret" not in str(caught.value)
    assert notifier_transport.driver.spans(["notifications.info"]) == []


@pytest.mark.parametrize("driver", ["messagingv2", "cloudevents", "log"])
def test_one_of_many_that_has_no_form_keeps_all_of_them_back(
    notifier_transport: transport.NotificationTransport, caplog: pytest.LogCaptureFixture, driver: str
) -> None:
    caplog.set_level(logging.INFO)
    sender = notifier.Notifier(notifier_transport, "host1", driver=driver, topics=["one", "two"])
    with pytest.raises(EncodeError, match="payload"):
        sender.send_many({}, "info", [("e", 1), ("e", 2), ("e", object()), ("e", 4)])
    assert notifier_transport.stats().accepted == 0
    assert caplog.records == []
    sender.send_many({}, "info", [("e", 1), ("e", 2)])
    assert notifier_transport.stats().accepted + 2 * len(caplog.records) == 4


def test_one_of_many_that_has_no_form_keeps_all_of_them_out_of_a_transaction(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport)
    with sender.transaction() as receipts:
        with pytest.raises(EncodeError):
            sender.send_many({}, "info", [("e", "before"), ("e", object())])
        sender.info({}, "e", "after")
    assert len(receipts) == 1
    assert [one.payload for one in published(notifier_transport)] == ["after"]


def test_a_refusal_of_one_channel_does_not_keep_it_from_the_others(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("driver", ["messagingv2", "test"], group="notifications")
    bus = transport.get_notification_transport(notifier_conf)
    recording.reset()
    with pytest.raises(EncodeError):
        notifier.Notifier(bus).info({}, "e", object())
    assert len(recording.NOTIFICATIONS) == 1
    bus.cleanup()


def test_a_channel_that_fails_does_not_crash_the_service(
    notifier_transport: transport.NotificationTransport, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(channel.Channel):
        def send(self, notifications: Any, how: channel.Sending) -> None:
            raise OSError("no such thing")

    sender = notifier.Notifier(notifier_transport)
    sender._channels.insert(0, Broken(notifier_transport.conf, [], notifier_transport))
    sender.info({}, "e", "s3cret")
    assert len(published(notifier_transport)) == 1
    assert "The channel Broken failed" in caplog.text
    with pytest.raises(MessageDeliveryFailure, match="the channel Broken raised OSError"):
        sender.prepare(wait=True).info({}, "e", 1)


def test_wait_returns_where_it_landed(notifier_transport: transport.NotificationTransport) -> None:
    sender = notifier.Notifier(notifier_transport, "host1", topics=["one", "two"]).prepare(wait=True)
    receipts = sender.info({}, "e", 1)
    assert receipts is not None
    assert [receipt.partition.topic for receipt in receipts] == ["one.info", "two.info"]
    for receipt in receipts:
        start = receipt.offset
        (span,) = [s for s in notifier_transport.driver.spans([receipt.partition.topic]) if s.stop > s.start]
        assert span.partition == receipt.partition
        assert (span.start, span.stop) == (start, start + 1)


def test_wait_raises_when_it_is_not_durable(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("outbox_bytes", 1_000, group="notifications")
    bus = transport.get_notification_transport(notifier_conf)
    with pytest.raises(MessageDeliveryFailure, match="outbox"):
        notifier.Notifier(bus).prepare(wait=True).info({}, "e", "x" * 2_000)
    bus.cleanup()


def test_prepare_changes_what_is_given_and_keeps_the_rest(
    notifier_transport: transport.NotificationTransport,
) -> None:
    base = notifier.Notifier(notifier_transport, "host1", retry=3)
    special = base.prepare(publisher_id="host2", retry=None)
    assert (special.publisher_id, special.retry) == ("host2", -1)
    assert (base.publisher_id, base.retry) == ("host1", 3)
    assert base.prepare().publisher_id == "host1"
    (receipt,) = special.prepare(wait=True).info({}, "e", 1) or []
    assert isinstance(receipt, Receipt)
    assert special.info({}, "e", 1) is None


def test_send_many_sends_each_in_order_with_an_id_of_its_own(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport, "host1")
    sender.send_many({}, "warning", [(f"event.{n}", {"n": n}) for n in range(500)])
    sent = published(notifier_transport, "notifications.warn")
    assert [one.payload["n"] for one in sent] == list(range(500))
    assert [one.event_type for one in sent] == [f"event.{n}" for n in range(500)]
    assert {one.priority for one in sent} == {"WARN"}
    assert len({one.message_id for one in sent}) == 500


def test_send_many_refuses_an_unknown_priority(notifier_transport: transport.NotificationTransport) -> None:
    with pytest.raises(ValueError, match="unknown priority 'urgent'"):
        notifier.Notifier(notifier_transport).send_many({}, "urgent", [])


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, {b"host1"}),
        ("event_type", {b"thing.done"}),
        ("none", {None}),
        ("payload:instance.id", {b"i-1"}),
        (lambda notification: notification.payload["instance"]["id"].upper(), {b"I-1"}),
    ],
)
def test_the_key_orders_by_what_was_asked(
    notifier_transport: transport.NotificationTransport, key: Any, expected: set[bytes | None]
) -> None:
    sender = notifier.Notifier(notifier_transport, "host1", key=key)
    sender.info({}, "thing.done", {"instance": {"id": "i-1"}})
    sender.flush(30)
    spans = notifier_transport.driver.spans(["notifications.info"])
    keys = {delivery.record.key for span in spans for delivery in notifier_transport.driver.read(span)}
    assert keys == expected


def test_without_a_driver_nothing_is_sent_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    conf = cfg.ConfigOpts()
    bus = transport.get_notification_transport(conf, "sqlite://")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            notifier.Notifier(bus).info({}, "e", object())
    assert [record.getMessage() for record in caplog.records] == [
        "No [notifications] driver is configured: notifications are not sent"
    ]
    assert notifier.Notifier(bus).prepare(wait=True).info({}, "e", 1) == []
    bus.cleanup()


def test_is_enabled_is_false_for_noop_alone(notifier_transport: transport.NotificationTransport) -> None:
    assert not notifier.Notifier(notifier_transport, driver="noop").is_enabled()
    assert notifier.Notifier(notifier_transport, driver="messagingv2").is_enabled()


def test_an_unknown_channel_is_an_error(notifier_transport: transport.NotificationTransport) -> None:
    with pytest.raises(DriverNotFound, match="did you mean messagingv2"):
        notifier.Notifier(notifier_transport, driver="messagingv3")


def test_a_transaction_publishes_all_at_its_end(notifier_transport: transport.NotificationTransport) -> None:
    sender = notifier.Notifier(notifier_transport, "host1", topics=["one", "two"])
    with sender.transaction() as receipts:
        sender.info({}, "e", 1)
        sender.prepare(publisher_id="host2", wait=True).send_many({}, "info", [("e", 2), ("e", 3)])
        assert published(notifier_transport, "one.info") == []
    assert [one.payload for one in published(notifier_transport, "one.info")] in ([1, 2, 3], [2, 3, 1])
    assert [receipt.partition.topic for receipt in receipts] == ["one.info", "two.info"] * 3


def test_in_a_transaction_the_block_has_the_receipts_and_not_the_call_that_waits(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport)
    with sender.transaction() as receipts:
        assert sender.prepare(wait=True).info({}, "e", 1) == []
        assert (published(notifier_transport), receipts) == ([], [])
    assert len(published(notifier_transport)) == len(receipts) == 1


def test_a_transaction_that_raises_publishes_nothing(
    notifier_transport: transport.NotificationTransport,
) -> None:
    sender = notifier.Notifier(notifier_transport)

    def half_done() -> None:
        with sender.transaction():
            sender.info({}, "e", 1)
            sender.info({}, "e", object())

    with pytest.raises(EncodeError):
        half_done()
    assert published(notifier_transport) == []
    sender.info({}, "e", "after it, as always")
    assert len(published(notifier_transport)) == 1


def test_a_transaction_is_of_one_thread(notifier_transport: transport.NotificationTransport) -> None:
    sender = notifier.Notifier(notifier_transport)
    with sender.transaction():
        sender.info({}, "e", "inside")
        thread = threading.Thread(target=lambda: sender.info({}, "e", "outside"))
        thread.start()
        thread.join()
        assert [one.payload for one in published(notifier_transport)] == ["outside"]
        with pytest.raises(MessageDeliveryFailure, match="already"), sender.transaction():
            pass
    assert len(published(notifier_transport)) == 2


def test_a_transaction_that_cannot_commit_says_so_and_leaves_nothing(
    notifier_conf: cfg.ConfigOpts, tmp_path: Path
) -> None:
    log = tmp_path / "bus.db"
    bus = transport.get_notification_transport(notifier_conf, f"sqlite:///{log}?busy_timeout=0.1")
    sender = notifier.Notifier(bus)
    sender.prepare(wait=True).info({}, "e", "warm-up")

    def commit_late() -> None:
        with sender.transaction():
            sender.info({}, "e", 1)

    with locked(log), pytest.raises(MessageDeliveryFailure, match="transaction aborted"):
        commit_late()
    assert [one.payload for one in published(bus)] == ["warm-up"]
    bus.cleanup()


def test_an_empty_driver_is_none_and_one_named_twice_is_one(notifier_conf: cfg.ConfigOpts) -> None:
    notifier_conf.set_override("driver", ["", "messagingv2", "messagingv2"], group="notifications")
    bus = transport.get_notification_transport(notifier_conf)
    notifier.Notifier(bus).info({}, "e", 1)
    assert len(published(bus)) == 1
    bus.cleanup()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "[DEFAULT]\ntransport_url = sqlight://",
            r"app.conf, \[DEFAULT\] transport_url: sqlight: not found: ",
        ),
        (
            "[notifications]\ndriver = messagingv3",
            r"app.conf, \[notifications\] driver: messagingv3: not found: ",
        ),
        ("[notifications]\nkey = publisher", r"app.conf, \[notifications\] key: publisher: not found: "),
    ],
)
def test_what_is_not_there_is_blamed_on_its_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "app.conf").write_text(lines + "\n")
    conf = cfg.ConfigOpts()
    conf([], project="app", default_config_files=[str(tmp_path / "app.conf")])
    with pytest.raises(DriverNotFound, match=said):
        notifier.Notifier(transport.get_notification_transport(conf))
