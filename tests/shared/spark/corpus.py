"""The records that the codec's own tests read, and mutilations of them."""

import json
import random
from typing import Any

from notifier_kafka.contract.driver import Headers
from notifier_kafka.notification import Notification
from notifier_kafka.wire import codec
from tests.shared import wire_samples

Raw = tuple[bytes | None, Headers]

TIMES = [
    "2026-11-18T07:50:58Z",
    "2026-11-18T07:50:58.5+02:00",
    "2026-11-18T07:50:58.123456789Z",
    "yesterday",
    1,
]


def binary(attributes: dict[str, Any], payload: bytes = b'{"a": 1}') -> Raw:
    return payload, tuple((f"ce_{name}", str(text).encode()) for name, text in attributes.items())


def tolerated() -> list[Raw]:
    flat = wire_samples.FLAT
    changes: list[dict[str, Any]] = [
        {},
        {"_context": None},
        {"_context": {"request_id": "r", "roles": ["a"]}},
        {"priority": "Warn"},
        {"extra": {"x": 1}},
        {"payload": 2**70},
        {"payload": [float("nan"), float("inf"), -float("inf"), {"n": float("nan")}]},
        {"payload": '🐍 \\ud800 " é'},
        {"payload": {"big": 10**400, "e": 1e300, "t": True, "f": False, "z": None, "o": {}, "l": []}},
        dict.fromkeys(set(flat) - {"priority"}),
    ]
    values = [value for change in changes for value in wire_samples.both_shells(flat | change)]
    values += wire_samples.both_shells({"priority": "sample"})
    values += [b" \t\r\n" + values[0] + b"\n ", b'{"priority": "x", "priority": "INFO"}']
    values.append(b'{"priority":"INFO","payload":' + b"[" * 499 + b"]" * 499 + b"}")
    values.append(json.dumps({"priority": "INFO", "payload": ["[{" * 600] * 2}).encode())
    return [(value, ()) for value in values]


def events() -> list[Raw]:
    structured = wire_samples.STRUCTURED
    changes: list[dict[str, Any]] = [
        {},
        {"priority": "error"},
        {"priority": None},
        {"priority": "loud"},
        *({"time": time} for time in TIMES),
        {"source": "a+b%20%zz%C3%A9%2"},
        {"source": "about:blank"},
        {"context": '{"a": 1}'},
        {"context": "{"},
        {"context": "[]"},
        {"context": "null"},
        {"context": {"a": 1}},
        {"data": None},
        {"specversion": "1.9"},
        {"specversion": "2.0"},
        {"id": None},
        {"type": 5},
        {"data_base64": None},
    ]
    by_type: Headers = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
    found: list[Raw] = []
    for change in changes:
        value = json.dumps(structured | change).encode()
        found += [(value, ()), (value, by_type)]
        if all(isinstance(each, str) for each in change.values()):
            found.append(
                binary({name: each for name, each in (structured | change).items() if name != "data"})
            )
    flat = json.dumps(wire_samples.FLAT).encode()
    found += [
        (flat, by_type),
        (flat, (("ce_specversion", b"1.0"),)),
        (flat, (("ce_specversion", b"1.0"), ("ce_id", b"\xff"), ("ce_type", b"t"), ("ce_source", b"s"))),
        (json.dumps(structured | {"oslo.message": None}).encode(), ()),
        binary({"specversion": "1.0", "id": "m", "type": "t", "source": "s"}, b"[1"),
        binary({"specversion": "1.0", "id": "m", "type": "t", "source": "s"}, b'{"oslo.version": "2.0"}'),
        binary({"specversion": "1.0", "id": "m", "type": "t", "source": "s"}, b"5"),
    ]
    return found


def encoded() -> list[Raw]:
    found: list[Raw] = []
    payloads = [{"a": 1}, None, "text", [1, 2.5, {"é": "🐍"}], {"k": "x" * 3000}]
    for form in wire_samples.FORMS:
        for payload in payloads:
            for coder in (wire_samples.STANDARD, wire_samples.FAST):
                sent: Notification = wire_samples.SENT._replace(payload=payload, context={"user": "Zoë"})
                found.append(coder.encode(sent._replace(publisher_id="a/b c:é"), form, b"k"))
                found.append(coder.encode(sent._replace(publisher_id=None, context={}), form))
    return found


def malformed() -> list[Raw]:
    return [(value, ()) for value, _reason in wire_samples.malformed()]


def mutilated(records: list[Raw], count: int, seed: int = 6) -> list[Raw]:
    """Change single bytes of records: most become malformed, some do not."""
    chance = random.Random(seed)
    small = [(value, headers) for value, headers in records if value and len(value) < 600]
    found: list[Raw] = []
    for _ in range(count):
        value, headers = chance.choice(small)
        assert value
        at = chance.randrange(len(value))
        piece = bytes([chance.choice(b'{}[]",:\\ud\xe9\x00 019-.eN')])
        cut = chance.choice([0, 0, 1, 1, 1, 5])
        found.append((value[:at] + chance.choice([piece, piece, b""]) + value[at + cut :], headers))
    return found


def everything() -> list[Raw]:
    whole = tolerated() + events() + encoded() + malformed()
    return whole + mutilated(whole, 1500)


decode = codec.decode
