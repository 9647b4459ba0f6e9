"""What is sent both ways. Runs under both interpreters, so it imports nothing of ours or theirs."""

import datetime
import decimal
import uuid
from typing import Any, NamedTuple

PRIORITIES = ("audit", "debug", "info", "warn", "warning", "error", "critical", "sample")


class Context:
    """A request's context: what is sent of it is the redacted copy."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def redacted_copy(self) -> "Context":
        return Context(**{name: value for name, value in self.values.items() if name != "token"})

    def to_dict(self) -> dict[str, Any]:
        return dict(self.values)


class Sample(NamedTuple):
    """One call, and what the endpoint at the other end is given."""

    priority: str
    event_type: str
    context: Any
    payload: Any
    context_there: dict[str, Any]
    payload_there: Any


# As sent; and as received, where that differs.
_PAYLOADS: dict[str, tuple[Any, ...]] = {
    "object": ({"a": 1, "nested": {"list": [1, 2.5, None, True, "x"], "empty": {}}},),
    "text": ("text",),
    "empty-text": ("",),
    "unicode": ('grüße 日本 \U0001f389 \u0000 \n " \\ \u2028',),
    "true": (True,),
    "zero": (0,),
    "one-point-zero": (1.0,),
    "tiny": (5e-324,),
    "large-integer": (2**80,),
    "null": (None,),
    "list": ([1, [2, [3]]],),
    "number-keys": ({1: "one"}, {"1": "one"}),
    "tuple": ((1, 2), [1, 2]),
    "set": ({7}, [7]),
    "bytes": (b"caf\xc3\xa9", "café"),
    "decimal": (decimal.Decimal("1.10"), "1.10"),
    "uuid": (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    "moment": (datetime.datetime(2026, 11, 18, 7, 50, 58, 485407), "2026-11-18T07:50:58.485407"),
    "large": ({"blob": "x" * 256 * 1024},),
}
_CONTEXTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": (None, {}),
    "plain-dict": ({"token": "s3cret"}, {}),
    "redacted": (
        Context(token="s3cret", user="ü", roles=["a"], depth={"n": None}),
        {"user": "ü", "roles": ["a"], "depth": {"n": None}},
    ),
}


def samples() -> list[Sample]:
    """Every priority, every kind of payload, every kind of context."""
    found = [Sample(each, f"priority.{each}", {}, {"n": 1}, {}, {"n": 1}) for each in PRIORITIES]
    found += [Sample("info", f"payload.{name}", {}, p[0], {}, p[-1]) for name, p in _PAYLOADS.items()]
    found += [Sample("info", f"context.{name}", *_context(name)) for name in _CONTEXTS]
    return found


def _context(name: str) -> tuple[Any, Any, dict[str, Any], Any]:
    given, there = _CONTEXTS[name]
    return given, [], there, []
