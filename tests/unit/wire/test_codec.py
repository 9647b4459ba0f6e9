"""The wire formats envelope and flat: exact bytes, and what is accepted and refused."""

import datetime
import decimal
import json
import subprocess
import sys
import uuid
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec, json_library, json_values
from tests.shared.wire_samples import BOTH, EVERY_FORM, FAST, FLAT, SENT, STANDARD, both_shells, malformed


def test_orjson_is_used_when_it_is_there() -> None:
    assert json_library.fastest().name == "orjson"
    without = (
        "import sys; sys.modules['orjson'] = None; from notifier_kafka.wire import codec, json_library as j; "
    )
    command = [sys.executable, "-c", without + "print(j.fastest().name)"]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "json\n"


# What oslo.messaging 18.3.1 wrote for these, by its serialize_msg and jsonutils.dumps.
# Each is the body's part that differs, as it stands in the body, and the shell below.
OSLO_SHELL = (
    '{"oslo.version": "2.0", "oslo.message": "{\\"message_id\\": '
    '\\"1c33de3a-00f7-412d-98f5-96be91807057\\", \\"publisher_id\\": PUBLISHER, '
    '\\"event_type\\": \\"compute.instance.create.end\\", \\"priority\\": \\"INFO\\", '
    '\\"payload\\": PAYLOAD, \\"timestamp\\": \\"2026-11-18 07:50:58.485407\\", '
    '\\"_context\\": {}}"}'
)

OSLO_WROTE: list[tuple[Any, str]] = [
    ({"a": 1}, r"{\"a\": 1}"),
    (None, "null"),
    ("text", r"\"text\""),
    (
        {"name": "Zoë 🐍", "q": 'say "hi" \\ \n/', "l": [1, 2.5, True, None, []], "o": {}},
        r"{\"name\": \"Zo\\u00eb \\ud83d\\udc0d\", \"q\": \"say \\\"hi\\\" \\\\ \\n/\", "
        r"\"l\": [1, 2.5, true, null, []], \"o\": {}}",
    ),
    (
        {
            "when": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
            "day": datetime.date(2026, 1, 2),
            "id": uuid.UUID(int=5),
            "d": decimal.Decimal("1.50"),
            "s": {1},
            "t": (1, 2),
            "b": b"bytes",
            5: 1e16,
            "big": 2**70,
        },
        r"{\"when\": \"2026-01-02T03:04:05.000006\", \"day\": \"2026-01-02\", "
        r"\"id\": \"00000000-0000-0000-0000-000000000005\", \"d\": \"1.50\", \"s\": [1], "
        r"\"t\": [1, 2], \"b\": \"bytes\", \"5\": 1e+16, \"big\": 1180591620717411303424}",
    ),
]


def oslo_bytes(payload: str, publisher: str = r"\"compute.host1\"") -> bytes:
    return OSLO_SHELL.replace("PUBLISHER", publisher).replace("PAYLOAD", payload).encode()


@pytest.mark.parametrize(("payload", "written"), OSLO_WROTE)
def test_the_envelope_is_oslo_messagings_to_the_byte(payload: Any, written: str) -> None:
    assert STANDARD.encode(SENT._replace(payload=payload), "envelope").value == oslo_bytes(written)


@pytest.mark.parametrize(("payload", "written"), OSLO_WROTE)
def test_orjsons_envelope_differs_in_spelling_alone(payload: Any, written: str) -> None:
    value = FAST.encode(SENT._replace(payload=payload), "envelope").value
    envelope, expected = json.loads(value), json.loads(oslo_bytes(written))
    assert list(envelope) == list(expected) == ["oslo.version", "oslo.message"]
    assert envelope["oslo.version"] == "2.0"
    body, expected_body = json.loads(envelope["oslo.message"]), json.loads(expected["oslo.message"])
    assert body == expected_body
    assert list(body) == list(expected_body)


@BOTH
@pytest.mark.parametrize(("payload", "written"), OSLO_WROTE)
def test_what_oslo_messaging_wrote_is_read(coder: codec.Codec, payload: Any, written: str) -> None:
    expected = SENT._replace(payload=json_values.convert(payload, "payload"))
    assert coder.decode(Record("t", oslo_bytes(written))) == expected


@BOTH
def test_a_null_publisher(coder: codec.Codec) -> None:
    assert coder.decode(Record("t", oslo_bytes("null", "null"))).publisher_id is None
    assert STANDARD.encode(SENT._replace(publisher_id=None, payload=None), "envelope").value == oslo_bytes(
        "null", "null"
    )


@BOTH
def test_flat_is_the_body_alone(coder: codec.Codec) -> None:
    assert json.loads(coder.encode(SENT, "flat").value) == {
        "message_id": "1c33de3a-00f7-412d-98f5-96be91807057",
        "publisher_id": "compute.host1",
        "event_type": "compute.instance.create.end",
        "priority": "INFO",
        "payload": {"a": 1},
        "timestamp": "2026-11-18 07:50:58.485407",
        "_context": {},
    }


@BOTH
@pytest.mark.parametrize("form", ["envelope", "flat"])
def test_headers(coder: codec.Codec, form: codec.Form) -> None:
    notification = SENT._replace(event_type="compute.Zoë")
    assert dict(coder.encode(notification, form).headers) == {
        "content-type": b"application/json",
        "message-id": b"1c33de3a-00f7-412d-98f5-96be91807057",
        "event-type": "compute.Zoë".encode(),
        "publisher-id": b"compute.host1",
        "priority": b"INFO",
    }
    absent = notification._replace(message_id=None, event_type=None, publisher_id=None)
    assert [name for name, _ in coder.encode(absent, form).headers] == ["content-type", "priority"]


@BOTH
@EVERY_FORM
def test_a_context_travels(coder: codec.Codec, form: codec.Form) -> None:
    notification = SENT._replace(context={"user": "Zoë", "roles": ["a"]})
    value, headers = coder.encode(notification, form)
    assert coder.decode(Record("t", value, None, headers)) == notification


@BOTH
@EVERY_FORM
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"event_type": 5}, "event_type: text is needed, not int"),
        ({"event_type": "\ud800"}, "event_type: a str with half"),
        ({"message_id": object()}, "message_id: a value of type object"),
        ({"timestamp": 5}, "timestamp: text is needed, not int"),
        ({"publisher_id": ["secret"]}, "publisher_id: text is needed, not list"),
        ({"priority": "URGENT"}, "priority: not one of AUDIT, DEBUG, INFO, WARN, ERROR, CRITICAL, SAMPLE"),
        ({"priority": ["secret"]}, "priority: not one of"),
        ({"context": {"x": object()}}, r"context\.x: a value of type object"),
        ({"context": ["secret"]}, "context: an object is needed, not list"),
    ],
)
def test_other_members_are_checked(
    coder: codec.Codec, form: codec.Form, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(EncodeError, match=reason):
        coder.encode(SENT._replace(**changes), form)


READ = Notification("m", "p", "e", "INFO", [1], "2026-11-18 07:50:58", {"c": 1})


@BOTH
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, READ),
        ({"_context": None}, READ._replace(context={})),
        ({"priority": "info"}, READ),
        ({"priority": "Warn"}, READ._replace(priority="WARN")),
        ({"extra": {"x": 1}}, READ),
        ({"payload": 2**70}, READ._replace(payload=2**70)),
        ({"payload": -(10**18) * 9 - 10**18}, READ._replace(payload=-(10**19))),
        ({"payload": [float("nan"), float("inf"), -float("inf")]}, READ._replace(payload=[None] * 3)),
        ({"payload": "🐍"}, READ._replace(payload="🐍")),
        (dict.fromkeys(set(FLAT) - {"priority"}), Notification(None, None, None, "INFO", None, None, {})),
    ],
)
def test_tolerated(coder: codec.Codec, changes: dict[str, Any], expected: Notification) -> None:
    for value in both_shells(FLAT | changes):
        assert coder.decode(Record("t", value)) == expected


@BOTH
@pytest.mark.parametrize("number", ["1e999", "-1e999", "1E+0400", f"{'9' * 400}.0", f"{'9' * 300}e10"])
def test_a_number_that_no_float_holds_is_read_as_infinity_is(coder: codec.Codec, number: str) -> None:
    text = f'{{"priority": "INFO", "payload": [{number}, 1e308, -2.5e-3, 1e-999, 7]}}'
    for value in (text.encode(), json.dumps({"oslo.version": "2.0", "oslo.message": text}).encode()):
        assert coder.decode(Record("t", value)).payload == [None, 1e308, -0.0025, 0.0, 7]


@BOTH
def test_absent_members(coder: codec.Codec) -> None:
    for value in both_shells({"priority": "sample"}):
        assert coder.decode(Record("t", value)) == (None, None, None, "SAMPLE", None, None, {})


@BOTH
@pytest.mark.parametrize(("value", "reason"), malformed())
def test_malformed(coder: codec.Codec, value: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as caught:
        coder.decode(Record("t", value))
    assert len(str(caught.value)) < 100
