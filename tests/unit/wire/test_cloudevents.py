"""CloudEvents: exact bytes, and events of other senders."""

import json
from typing import Any

import pytest

from notifier_kafka.contract.driver import Headers, Record
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec
from tests.shared.wire_samples import BOTH, FLAT, SENT, STRUCTURED

ATTRIBUTES = {
    "specversion": "1.0",
    "id": "1c33de3a-00f7-412d-98f5-96be91807057",
    "type": "compute.instance.create.end",
    "source": "nova/host%3A1%20b",
    "time": "2026-11-18T07:50:58.485407Z",
    "priority": "INFO",
    "partitionkey": "k1",
}

EVENT = SENT._replace(publisher_id="nova/host:1 b")


@BOTH
def test_cloudevents_binary(coder: codec.Codec) -> None:
    value, headers = coder.encode(EVENT, "cloudevents-binary", b"k1")
    assert json.loads(value) == {"a": 1}
    expected = {f"ce_{name}": text.encode() for name, text in ATTRIBUTES.items()}
    assert dict(headers) == {"content-type": b"application/json"} | expected


@BOTH
def test_cloudevents_structured(coder: codec.Codec) -> None:
    value, headers = coder.encode(EVENT, "cloudevents-structured", b"k1")
    assert json.loads(value) == ATTRIBUTES | {"datacontenttype": "application/json", "data": {"a": 1}}
    assert dict(headers)["content-type"] == b"application/cloudevents+json"
    assert dict(headers)["message-id"] == b"1c33de3a-00f7-412d-98f5-96be91807057"


@BOTH
@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
@pytest.mark.parametrize(
    "changes", [{"event_type": None}, {"event_type": ""}, {"message_id": None}, {"timestamp": "now"}]
)
def test_what_cloudevents_require(coder: codec.Codec, form: codec.Form, changes: dict[str, Any]) -> None:
    with pytest.raises(EncodeError, match=r"a CloudEvent needs|timestamp: not of the form"):
        coder.encode(SENT._replace(**changes), form)


@BOTH
@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
@pytest.mark.parametrize("nobody", [None, ""])
def test_a_cloudevent_of_nobody(coder: codec.Codec, form: codec.Form, nobody: str | None) -> None:
    notification = SENT._replace(publisher_id=None, timestamp=None)
    value, headers = coder.encode(notification._replace(publisher_id=nobody), form)
    assert b"about:blank" in (value, *dict(headers).values()) or b'"about:blank"' in value
    assert coder.decode(Record("t", value, None, headers)) == notification


OTHERS = Notification("m", "https://x/a b", "e", "INFO", [1], None, {})


@BOTH
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, OTHERS),
        ({"priority": "error"}, OTHERS._replace(priority="ERROR")),
        ({"time": "2026-11-18T07:50:58Z"}, OTHERS._replace(timestamp="2026-11-18 07:50:58")),
        ({"time": "2026-11-18T07:50:58.5+02:00"}, OTHERS._replace(timestamp="2026-11-18 05:50:58.500000")),
        ({"time": "2026-11-18T07:50:58.123456789Z"}, OTHERS._replace(timestamp="2026-11-18 07:50:58.123456")),
        ({"time": "yesterday"}, OTHERS._replace(timestamp="yesterday")),
        ({"time": "0001-01-01T00:00:00+14:00"}, OTHERS._replace(timestamp="0001-01-01T00:00:00+14:00")),
        ({"datacontenttype": "application/json", "unknown": 5}, OTHERS),
    ],
)
def test_cloudevents_of_others(coder: codec.Codec, changes: dict[str, Any], expected: Notification) -> None:
    value = json.dumps(STRUCTURED | changes).encode()
    by_type: Headers = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
    assert coder.decode(Record("t", value)) == expected
    assert coder.decode(Record("t", value, None, by_type)) == expected
    attributes = {name: str(text) for name, text in (STRUCTURED | changes).items() if name != "data"}
    headers = tuple((f"ce_{name}", text.encode()) for name, text in attributes.items())
    assert coder.decode(Record("t", b"[1]", None, headers)) == expected


@BOTH
def test_the_headers_say_what_a_value_is(coder: codec.Codec) -> None:
    """A payload that looks like an envelope is a payload, if the headers say so."""
    payload = {"oslo.version": "2.0", "oslo.message": 2**70}
    value, headers = coder.encode(SENT._replace(payload=payload), "cloudevents-binary")
    assert coder.decode(Record("t", value, None, headers)).payload == payload


@BOTH
@pytest.mark.parametrize(
    "headers",
    [
        (("content-type", b"application/cloudevents+json"),),
        (("ce_specversion", b"1.0"),),
        (("ce_specversion", b"1.0"), ("ce_id", b"\xff")),
        (("ce_specversion", b"1.0"), ("ce_id", b"m"), ("ce_type", b"t"), ("ce_source", None)),
    ],
)
def test_cloudevents_without_what_they_announce(coder: codec.Codec, headers: Any) -> None:
    with pytest.raises(DecodeError, match="CloudEvent"):
        coder.decode(Record("t", json.dumps(FLAT).encode(), None, headers))
