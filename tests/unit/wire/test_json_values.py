"""How values are converted to JSON, and which are refused."""

import collections
import dataclasses
import datetime
import decimal
import enum
import inspect
import ipaddress
import json
import re
import sys
import threading
import types
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import EncodeError
from notifier_kafka.wire import codec, json_values
from tests.shared.wire_samples import (
    BOTH,
    EVERY_FORM,
    FORMS,
    SENT,
)


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
