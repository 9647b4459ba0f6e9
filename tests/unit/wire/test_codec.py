"""The wire formats: exact bytes, and what is converted, refused and accepted."""

import collections
import dataclasses
import datetime
import decimal
import enum
import inspect
import ipaddress
import json
import re
import subprocess
import sys
import threading
import types
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from notifier_kafka.contract.driver import Headers, Record
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec, json_library, json_values

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
@EVERY_FORM
def test_a_context_travels(coder: codec.Codec, form: codec.Form) -> None:
    notification = SENT._replace(context={"user": "Zoë", "roles": ["a"]})
    value, headers = coder.encode(notification, form)
    assert coder.decode(Record("t", value, None, headers)) == notification


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Real(float):
    pass


class Swapped(dict[str, Any]):
    def items(self) -> Any:
        return [("from", "items")]


class Doubled(list[Any]):
    def __iter__(self) -> Any:
        return iter(["not", "the", "content"])


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Disk:
    size: int
    _hidden: Any = None


class Loose:
    """Has items() and is not a Mapping, like many objects of older programs."""

    def items(self) -> Any:
        return [("a", {1})]


ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
CONVERTED = [
    (datetime.datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05.000000"),
    (datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC), "2026-01-02T03:04:05.000006+00:00"),
    (datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=ZONE), "2026-01-02T03:04:05.000000+05:30"),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    ({1}, [1]),
    (frozenset([1]), [1]),
    ((1, (2,)), [1, [2]]),
    (Point(1, {2}), [1, [2]]),
    (collections.deque([1, 2]), [1, 2]),
    ({"a": 1}.keys(), ["a"]),
    (range(3), [0, 1, 2]),
    (b"Zo\xc3\xab", "Zoë"),
    (bytearray(b"ab"), "ab"),
    (decimal.Decimal("1.50"), "1.50"),
    (decimal.Decimal("NaN"), "NaN"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
    (ipaddress.ip_network("fe80::/64"), "fe80::/64"),
    (float("nan"), None),
    ([float("inf"), -float("inf"), 1.5], [None, None, 1.5]),
    (Disk(5, {1}), {"size": 5, "_hidden": [1]}),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    (Word.YES, "yes"),
    (Text("sub"), "sub"),
    (Whole(4), 4),
    (Real(1.5), 1.5),
    (Real("nan"), None),
    (Swapped(a=1), {"from": "items"}),
    (Doubled([1]), ["not", "the", "content"]),
    (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
    (collections.UserDict({"a": {1}}), {"a": [1]}),
    (Loose(), {"a": [1]}),
    (KeyError("k"), "KeyError('k')"),
    (2**64, 2**64),
    (-(2**63) - 1, -(2**63) - 1),
    ("🐍 \\ud800", "🐍 \\ud800"),
    ({1: "int", 1.5: "float", None: "none"}, {"1": "int", "1.5": "float", "null": "none"}),
    ({True: 1, False: 2}, {"true": 1, "false": 2}),
    ({float("nan"): 1, float("inf"): 2, -float("inf"): 3}, {"NaN": 1, "Infinity": 2, "-Infinity": 3}),
    ({uuid.UUID(int=5): 1, b"b": 2}, {"00000000-0000-0000-0000-000000000005": 1, "b": 2}),
    ({datetime.date(2026, 1, 2): 1, decimal.Decimal("0.5"): 2}, {"2026-01-02": 1, "0.5": 2}),
    ({Colour.RED: 1, Word.YES: 2, Level.HIGH: 3, Text("t"): 4}, {"red": 1, "yes": 2, "3": 3, "t": 4}),
    ({1: "lost", "1": "last"}, {"1": "last"}),
]


@BOTH
@pytest.mark.parametrize(("payload", "expected"), CONVERTED, ids=lambda value: type(value).__name__)
def test_conversions(coder: codec.Codec, payload: Any, expected: Any) -> None:
    assert repr(json_values.convert(payload, "payload")) == repr(expected)
    for form in FORMS:
        for wrapped, wanted in ((payload, expected), ({"in": [payload]}, {"in": [expected]})):
            value, headers = coder.encode(SENT._replace(payload=wrapped), form)
            assert repr(coder.decode(Record("t", value, None, headers)).payload) == repr(wanted)


def no_json(token: str) -> None:
    pytest.fail(f"{token} is not JSON")


@BOTH
@pytest.mark.parametrize("payload", [float("nan"), {"a": [float("inf")]}, Real("nan"), {float("nan"): 1}])
def test_what_is_written_is_strict_json(coder: codec.Codec, payload: Any) -> None:
    notification = SENT._replace(payload=payload, context={"load": float("nan")})
    for form in FORMS:
        json.loads(coder.encode(notification, form).value, parse_constant=no_json)
    envelope = json.loads(coder.encode(notification, "envelope").value)
    assert json.loads(envelope["oslo.message"], parse_constant=no_json)["_context"] == {"load": None}


def nested(levels: int, innermost: Any = None) -> Any:
    value: Any = [] if innermost is None else [innermost]
    for level in range(levels - 1):
        value = [value] if level % 2 else {"k": value}
    return value


def cycle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


class Hostile(collections.UserDict[str, Any]):
    def items(self) -> Any:
        raise OSError("secret")


class Hollow(collections.UserDict[str, Any]):
    """Contains a new object of its class, without end."""

    def items(self) -> Any:
        return [("k", Hollow())]


REFUSED = [
    (object(), "payload: a value of type object cannot"),
    ({"a": [1, 2, 3, threading.Lock()]}, r"payload\.a\[3\]: a value of type _thread\.lock cannot be written"),
    ({"my key": {"f": print}}, r"payload\['my key'\]\.f: a value of type builtin_function_or_method cannot"),
    ({5: {2: sys}}, r"payload\[int key\]\[int key\]: a value of type module cannot be written"),
    ([Colour], r"payload\[0\]: a value of type enum\.EnumType cannot be written"),
    ([Disk], r"payload\[0\]: a value of type type cannot be written"),
    (Disk(object()), None),  # type: ignore[arg-type]
    ((n for n in "ab"), "payload: a value of type generator cannot be written"),
    (datetime.time(1, 2), r"payload: a value of type datetime\.time cannot be written"),
    (datetime.timedelta(1), r"payload: a value of type datetime\.timedelta cannot be written"),
    (1j, "payload: a value of type complex cannot be written"),
    ([b"\xff secret"], r"payload\[0\]: bytes that is not UTF-8"),
    ({b"\xff secret": 1}, r"payload\[bytes key\]: bytes that is not UTF-8"),
    ("\ud800 secret", "payload: a str with half"),
    ("secret \ud83d\ude00", "payload: a str with half"),
    ({"\udfff": 1}, r"payload\['\\udfff'\]: a str with half"),
    ({(1, 2): "secret"}, r"payload\[tuple key\]: a key of type tuple"),
    ({frozenset(): "secret"}, r"payload\[frozenset key\]: a key of type frozenset"),
    ([10**5000], r"payload\[0\]: an int with more digits"),
    ({10**5000: 1}, r"payload\[int key\]: an int with more digits"),
    (cycle(), r"payload\.self\[0\]\.self.*\.\.\.: nested beyond"),
    (nested(json_values.MAX_DEPTH + 1), "nested beyond"),
    (nested(900), "nested beyond"),
    (nested(100_000), "nested beyond"),
    (Hollow(), "nested beyond"),
    (Hostile(), rf"payload: a value of type {re.escape(__name__)}\.Hostile raised OSError"),
]


@BOTH
@EVERY_FORM
@pytest.mark.parametrize(("payload", "reason"), REFUSED, ids=lambda value: type(value).__name__)
def test_refusals(coder: codec.Codec, form: codec.Form, payload: Any, reason: str | None) -> None:
    with pytest.raises(EncodeError, match=reason) as caught:
        coder.encode(SENT._replace(payload=payload), form)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@BOTH
@EVERY_FORM
def test_the_deepest_that_is_written_is_read(coder: codec.Codec, form: codec.Form) -> None:
    for innermost in (None, float("nan")):
        notification = SENT._replace(payload=nested(json_values.MAX_DEPTH, innermost))
        value, headers = coder.encode(notification, form)
        deepest = json_values.convert(notification.payload, "payload")
        assert coder.decode(Record("t", value, None, headers)).payload == deepest


def call_below(frames: int, call: Callable[[], object]) -> object:
    return call_below(frames - 1, call) if frames else call()


@BOTH
def test_a_stack_that_is_nearly_full(coder: codec.Codec) -> None:
    notification = SENT._replace(payload=nested(json_values.MAX_DEPTH, 2**70))
    frames = sys.getrecursionlimit() - len(inspect.stack()) - 150
    with pytest.raises(EncodeError, match="payload: nested too deeply for the stack"):
        call_below(frames, lambda: coder.encode(notification, "flat"))


@BOTH
def test_many_brackets_are_not_deep(coder: codec.Codec) -> None:
    payload = {"a": [{"b": [], "c": '[[{{\\"[['}] * 500, "text": "[{" * 500}
    for form in FORMS:
        value, headers = coder.encode(SENT._replace(payload=payload), form)
        assert coder.decode(Record("t", value, None, headers)).payload == payload


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


FLAT = {
    "message_id": "m",
    "publisher_id": "p",
    "event_type": "e",
    "priority": "INFO",
    "payload": [1],
    "timestamp": "2026-11-18 07:50:58",
    "_context": {"c": 1},
}
READ = Notification("m", "p", "e", "INFO", [1], "2026-11-18 07:50:58", {"c": 1})


def both_shells(members: Any) -> list[bytes]:
    body = json.dumps(members)
    shell = {"oslo.version": "2.0", "oslo.message": body}
    reordered = {"extra": [], "oslo.message": body, "oslo.version": "2.0"}
    return [body.encode(), json.dumps(shell).encode(), json.dumps(reordered).encode()]


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


STRUCTURED = {"specversion": "1.0", "id": "m", "type": "e", "source": "https://x/a%20b", "data": [1]}
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


@BOTH
@pytest.mark.parametrize(("value", "reason"), malformed())
def test_malformed(coder: codec.Codec, value: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as caught:
        coder.decode(Record("t", value))
    assert len(str(caught.value)) < 100


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
