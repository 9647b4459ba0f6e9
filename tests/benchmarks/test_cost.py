"""What a notification costs to encode, decode and dispatch, as a ratio to a bare loop, counted and not timed.

Counted are bytecodes that Python executes and calls of functions written in C. That is the
same on every machine and under any load, so a bound can be near: work done twice doubles it.
Who makes something cheaper stores what it is then, or the bound grows loose: run this file.
"""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import orjson
import pytest

from notifier_kafka import Notification, NotificationFilter
from notifier_kafka.driver import Record
from notifier_kafka.listening import dispatcher
from notifier_kafka.wire import codec, json_library


class Cost(NamedTuple):
    """Of one notification."""

    bytecodes: float
    calls: float


TIMES = 64
NEAR = Cost(0.25, 0.1)
"""The bytecodes of one thing differ between versions of Python, the calls do not."""

NOTIFICATION = Notification(
    "5f643cfc-664b-4c69-8000-ce2ed7b08216",
    "compute.host1",
    "compute.instance.create.end",
    "INFO",
    {"instance_id": "5f643cfc-664b-4c69-8000-ce2ed7b08216", "state": "active", "text": "x" * 125},
    "2026-11-18 07:50:58.485407",
    {},
)
ENCODED = codec.encode(NOTIFICATION, "envelope")
RECORD = Record("notifications.info", ENCODED.value, None, ENCODED.headers)


def cost(work: Callable[[], object]) -> Cost:
    """Count what some repetitions do, and divide."""
    for _ in range(TIMES):
        work()
    bytecodes = calls = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal bytecodes
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        bytecodes += event == "opcode"
        return trace

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "c_call"

    # One at a time, or each would count the other.
    before = sys.gettrace(), sys.getprofile()
    try:
        for put, hook in ((sys.settrace, trace), (sys.setprofile, profile)):
            put(hook)
            for _ in range(TIMES):
                work()
            put(None)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    # One call is the one that ends the counting.
    return Cost(bytecodes / TIMES, (calls - 1) / TIMES)


def encode_by_hand() -> object:
    message_id, publisher_id, event_type, priority, payload, timestamp, context = NOTIFICATION
    inner = {
        "message_id": message_id,
        "publisher_id": publisher_id,
        "event_type": event_type,
        "priority": priority,
        "payload": payload,
        "timestamp": timestamp,
        "_context": context,
    }
    value = orjson.dumps({"oslo.version": "2.0", "oslo.message": orjson.dumps(inner).decode()})
    return value, [
        ("content-type", b"application/json"),
        ("message-id", (message_id or "").encode()),
        ("event-type", (event_type or "").encode()),
        ("publisher-id", (publisher_id or "").encode()),
        ("priority", b"INFO"),
    ]


def decode_by_hand() -> object:
    found = orjson.loads(orjson.loads(RECORD.value or b"")["oslo.message"])
    return {name: found[name] for name in ("message_id", "publisher_id", "event_type", "payload")}


RULES = re.compile(r"^compute\."), re.compile(r"^compute\.instance\.")


class Endpoint:
    filter_rule = NotificationFilter(publisher_id=RULES[0].pattern, event_type=RULES[1].pattern)

    def info(self, *_message: Any) -> None:
        pass


ENDPOINT = Endpoint()
DISPATCHER = dispatcher.Dispatcher([ENDPOINT], None)


def dispatch_by_hand() -> None:
    message_id, publisher_id, event_type, _, payload, timestamp, context = NOTIFICATION
    if RULES[0].match(publisher_id or "") and RULES[1].match(event_type or ""):
        metadata = {"message_id": message_id, "timestamp": timestamp}
        ENDPOINT.info(context, publisher_id, event_type, payload, metadata)


WAYS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "encode": (lambda: codec.encode(NOTIFICATION, "envelope"), encode_by_hand),
    "decode": (lambda: codec.decode(RECORD), decode_by_hand),
    "dispatch": (lambda: DISPATCHER.handle(NOTIFICATION), dispatch_by_hand),
}
STORED = {
    "encode": Cost(2.36, 1),
    "decode": Cost(4.85, 4),
    "dispatch": Cost(3.39, 2.5),
}


def ratio(way: str) -> Cost:
    ours, bare = map(cost, WAYS[way])
    return Cost(ours.bytecodes / bare.bytecodes, ours.calls / bare.calls)


@pytest.mark.parametrize("way", WAYS)
def test_a_notification_costs_no_more_than_it_did(way: str) -> None:
    found = ratio(way)
    for now, was, near in zip(found, STORED[way], NEAR, strict=True):
        assert now <= was * (1 + near), f"{way}: {found}, stored are {STORED[way]}"


def test_deep_nesting_is_found_in_one_pass() -> None:
    flat, deep = b"[" + b"[]," * 498 + b"[]]", b"[" * 499 + b"]" * 499
    assert (json_library.exceeds(flat, 100), json_library.exceeds(deep, 100)) == (False, True)
    once = cost(lambda: json_library.exceeds(flat, 100))
    assert cost(lambda: json_library.exceeds(deep, 100)) == once


def test_work_done_twice_is_noticed() -> None:
    once, bare = WAYS["encode"]
    twice = cost(lambda: (once(), once())).calls / cost(bare).calls

    assert twice > STORED["encode"].calls * (1 + 5 * NEAR.calls)


if __name__ == "__main__":
    for way in WAYS:
        print(way, *ratio(way))
