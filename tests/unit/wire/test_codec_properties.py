"""The codec with generated input: both libraries give the same, and raise only its errors."""

import collections
import dataclasses
import enum
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notifier_kafka.contract.driver import Record
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import PRIORITIES, Notification
from notifier_kafka.wire import codec, json_library, json_values

STANDARD = codec.Codec(json_library.STANDARD)
FAST = codec.Codec(json_library.fastest())
FORMS: tuple[codec.Form, ...] = ("envelope", "flat", "cloudevents-binary", "cloudevents-structured")


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


class Real(float):
    pass


@dataclasses.dataclass(frozen=True)
class Disk:
    size: Any


ZONES = st.none() | st.timezones()
EDGES = [
    *(Colour.RED, Colour.PAIR, Word.YES, Level.HIGH, Real(2.5), Real("inf")),
    *("\ud800", "\ud83d\ude00", "🐍", "\\ud800", "[" * 300, "\x00\x7f\u2028"),
    *(2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**300, -0.0, 1e16, 1e400, 5e-324),
    *(object(), print, iter(()), Disk, 1j, b"\xff"),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=4)
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.uuids()
    | st.decimals()
    | st.sampled_from(EDGES)
)
HASHABLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.uuids() | st.dates()


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(HASHABLE | st.sampled_from(EDGES), inner)
        | st.builds(Disk, inner)
        | st.lists(inner).map(tuple)
        | st.lists(inner).map(collections.deque)
        | st.dictionaries(st.text(), inner).map(collections.OrderedDict)
        | st.frozensets(HASHABLE)
    )


PAYLOADS = st.recursive(SCALARS, deeper, max_leaves=12)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(EDGES[6:20]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
TEXTS = st.text(min_size=1)
NOTIFICATIONS = st.builds(
    Notification,
    message_id=TEXTS,
    publisher_id=st.none() | TEXTS,
    event_type=TEXTS,
    priority=st.sampled_from([name.upper() for name in PRIORITIES]),
    payload=PAYLOADS,
    timestamp=st.none() | st.datetimes().map(str),
    context=st.dictionaries(st.text(), JSON_VALUES, max_size=2),
)
FEW = settings(max_examples=60, deadline=None)


def encoded(coder: codec.Codec, notification: Notification, form: codec.Form) -> Any:
    """Encode and read back with the same library, or return the error."""
    try:
        value, headers = coder.encode(notification, form, b"key")
    except EncodeError as error:
        return str(error)
    return repr(coder.decode(Record("t", value, b"key", headers)))


def meant(notification: Notification) -> str:
    """Return what a reader must get, or the error that the caller must get."""
    try:
        return repr(
            notification._replace(
                context=json_values.convert(notification.context, "context"),
                payload=json_values.convert(notification.payload, "payload"),
            )
        )
    except EncodeError as error:
        return str(error)


@pytest.mark.parametrize("form", FORMS)
@FEW
@given(notification=NOTIFICATIONS)
def test_what_is_read_is_what_was_meant(form: codec.Form, notification: Notification) -> None:
    assert encoded(STANDARD, notification, form) == meant(notification)
    assert encoded(FAST, notification, form) == meant(notification)


@FEW
@given(notification=NOTIFICATIONS)
def test_each_library_reads_the_other(notification: Notification) -> None:
    try:
        by_standard = STANDARD.encode(notification, "envelope").value
    except EncodeError:
        return
    by_fast = FAST.encode(notification, "envelope").value
    assert repr(FAST.decode(Record("t", by_standard))) == repr(STANDARD.decode(Record("t", by_fast)))


def read(coder: codec.Codec, record: Record) -> str:
    try:
        return repr(coder.decode(record))
    except DecodeError as error:
        return str(error)


def same(record: Record) -> None:
    assert read(STANDARD, record) == read(FAST, record)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["content-type", "ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time", "ce_context", "x"]
        ),
        st.binary(max_size=4) | st.sampled_from([b"1.0", b"application/cloudevents+json", b"{}"]),
    ),
    max_size=8,
).map(tuple)


@FEW
@given(value=st.none() | st.binary(), headers=HEADERS)
@example(value=b"\x80", headers=())
def test_any_bytes(value: bytes | None, headers: Any) -> None:
    same(Record("t", value, None, headers))


NAMES = st.sampled_from(
    [
        "oslo.version",
        "oslo.message",
        "message_id",
        "publisher_id",
        "event_type",
        "priority",
        "payload",
        "timestamp",
        "_context",
        "specversion",
        "type",
        "source",
        "id",
        "time",
        "data",
        "context",
    ]
)
LIKELY = st.sampled_from(
    ["2.0", "1.0", "INFO", "info", '{"priority": "INFO", "payload": 1e3}', "{", "[]", {}]
)


@FEW
@given(value=st.dictionaries(NAMES, LIKELY | JSON_VALUES) | JSON_VALUES, headers=HEADERS)
def test_any_json(value: Any, headers: Any) -> None:
    same(Record("t", json.dumps(value).encode(), None, headers))
    same(Record("t", json.dumps(value).encode()))


@FEW
@given(tokens=st.text(alphabet='0123456789-+.eE[]{},:"\\udD8a NInfity', max_size=60))
@example(tokens="-0")
@example(tokens="-0.0")
@example(tokens="1e400")
@example(tokens="-1e400")
@example(tokens="1E+5")
@example(tokens="01")
@example(tokens="1.")
@example(tokens="9223372036854775808")
@example(tokens="-9223372036854775809")
@example(tokens="18446744073709551616")
@example(tokens="123456789012345678901234567890.5")
@example(tokens="0.1234567890123456789012345678901234567890")
@example(tokens='"\\ud83d\\ude00"')
@example(tokens='"\\uD83D"')
@example(tokens='"\t"')
@example(tokens='{"a": 1, "a": 2}')
@example(tokens="[1,]")
@example(tokens="[NaN, Infinity, -Infinity]")
def test_any_payload_text(tokens: str) -> None:
    body = f'{{"priority": "INFO", "payload": {tokens}}}'
    same(Record("t", body.encode()))
    same(Record("t", json.dumps({"oslo.version": "2.0", "oslo.message": body}).encode()))
    same(Record("t", tokens.encode(), None, (("ce_specversion", b"1.0"), ("ce_id", b"i"))))


@FEW
@given(
    levels=st.integers(1, 100) | st.integers(480, 520) | st.integers(900, 1100),
    innermost=st.sampled_from(["", "1", '"[["', '"' + "[" * 600 + '"', "{}"]),
    width=st.integers(1, 3),
)
def test_any_depth(levels: int, innermost: str, width: int) -> None:
    chain = "[" * levels + innermost + "]" * levels
    text = "[" + ", ".join([chain] * width) + "]"
    depth = levels + 1 + (innermost == "{}")
    assert json_library.exceeds(text.encode(), 100) == (depth > 100)
    assert not json_library.exceeds(json.dumps(text).encode(), 100)
    record = Record("t", f'{{"priority": "INFO", "payload": {text}}}'.encode())
    for coder in (STANDARD, FAST):
        assert read(coder, record).startswith("Notification") == (depth < codec.MAX_READ_DEPTH)
