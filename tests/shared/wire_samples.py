"""Samples of the wire formats, for the tests of the codec and of Spark."""

import json
from typing import Any

import pytest

from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec, json_library

STANDARD = codec.Codec(json_library.STANDARD)

FAST = codec.Codec(json_library.fastest())

BOTH = pytest.mark.parametrize("coder", [STANDARD, FAST], ids=["standard", "fast"])

FORMS: tuple[codec.Form, ...] = ("envelope", "flat", "cloudevents-binary", "cloudevents-structured")

EVERY_FORM = pytest.mark.parametrize("form", FORMS)

SENT = Notification(
    "1c33de3a-00f7-412d-98f5-96be91807057",
    "compute.host1",
    "compute.instance.create.end",
    "INFO",
    {"a": 1},
    "2026-11-18 07:50:58.485407",
    {},
)

FLAT = {
    "message_id": "m",
    "publisher_id": "p",
    "event_type": "e",
    "priority": "INFO",
    "payload": [1],
    "timestamp": "2026-11-18 07:50:58",
    "_context": {"c": 1},
}


def both_shells(members: Any) -> list[bytes]:
    body = json.dumps(members)
    shell = {"oslo.version": "2.0", "oslo.message": body}
    reordered = {"extra": [], "oslo.message": body, "oslo.version": "2.0"}
    return [body.encode(), json.dumps(shell).encode(), json.dumps(reordered).encode()]


STRUCTURED = {"specversion": "1.0", "id": "m", "type": "e", "source": "https://x/a%20b", "data": [1]}


def malformed() -> list[Any]:
    body = json.dumps(FLAT)
    shell = {"oslo.version": "2.0", "oslo.message": body}
    return [
        (None, "tombstone"),
        (b"", "empty"),
        (b"nonsense", "not JSON"),
        (b"\xff\xfe", "not Unicode"),
        (body.encode("utf-16"), "not Unicode"),
        (body.encode("utf-8-sig"), "not JSON"),
        (b'{"priority": "INFO", "payload": "\xed\xa0\x80"}', "not Unicode"),
        (b'{"priority": "INFO", "payload": "\\ud800"}', "not Unicode"),
        (b'{"priority": "INFO", "payload": "\\uDFFF"}', "not Unicode"),
        (b'{"priority": "INFO", "payload": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"5", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no priority"),
        (b"[" * 100_000, "not JSON"),
        (b"[" * 900 + b"]" * 900, "nested beyond|not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "nested beyond|not JSON"),
        (b'{"priority":"INFO","payload":' + b"[" * 500 + b"]" * 500 + b"}", "nested beyond"),
        (json.dumps(shell | {"oslo.version": "2.1"}).encode(), "version is not 2.0"),
        (json.dumps(shell | {"oslo.version": "1.0"}).encode(), "version is not 2.0"),
        (json.dumps(shell | {"oslo.version": 2.0}).encode(), "version is not 2.0"),
        (json.dumps(shell | {"oslo.message": FLAT}).encode(), "is not text"),
        (json.dumps({"oslo.version": "2.0"}).encode(), "is not text"),
        (json.dumps(shell | {"oslo.message": "[]"}).encode(), "not a JSON object"),
        (json.dumps(shell | {"oslo.message": ""}).encode(), "not JSON"),
        (json.dumps(shell | {"oslo.message": "\ud800"}).encode(), "not Unicode"),
        (json.dumps(shell | {"oslo.message": "[" * 10**5}).encode(), "not JSON"),
        *((value, "unknown priority") for value in both_shells(FLAT | {"priority": "URGENT"})),
        *((value, "no priority") for value in both_shells(FLAT | {"priority": ["INFO"]})),
        *((value, "is not text") for value in both_shells(FLAT | {"event_type": 5})),
        *((value, "context is not a JSON object") for value in both_shells(FLAT | {"_context": []})),
        (json.dumps(STRUCTURED | {"specversion": "0.3"}).encode(), "version is not 1.x"),
        (json.dumps(STRUCTURED | {"id": 5}).encode(), "id is missing or not text"),
        (json.dumps(STRUCTURED | {"data_base64": "AA=="}).encode(), "data is not JSON"),
        (json.dumps(STRUCTURED | {"context": "{"}).encode(), "not JSON"),
        (json.dumps(STRUCTURED | {"context": "[]"}).encode(), "context is not a JSON object"),
        (json.dumps(STRUCTURED | {"priority": 1}).encode(), "no priority"),
        (json.dumps(STRUCTURED | {"time": 1}).encode(), "is not text"),
    ]
