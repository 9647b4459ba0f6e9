"""Chooses the JSON library: orjson if it is installed, else the standard library.

Both give the same results. orjson may refuse more; what it refuses, the standard library
converts. A test compares the two.
"""

import functools
import itertools
import json
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from notifier_kafka.wire import json_values

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]


class JsonLibrary(NamedTuple):
    """A few functions for JSON text in UTF-8.

    ``dumps`` converts by the rules of ``json_values``. When it raises anything, convert with
    ``json_values.convert``, which also says what is wrong and where, and write the result
    with ``dump_primitives``. ``quote`` writes a str without halves of surrogate pairs.
    ``loads`` raises ``ValueError`` or ``RecursionError`` for what is not JSON. ``skim`` does
    the same faster, for text whose numbers do not matter.
    """

    name: str
    dumps: Callable[[Any], bytes]
    quote: Callable[[str], bytes]
    loads: Callable[[bytes], Any]
    skim: Callable[[bytes], Any]


def exceeds(text: bytes, levels: int) -> bool:
    """Say whether valid JSON nests deeper than ``levels``.

    Few bytes or few brackets cannot nest deeply, which decides nearly every case. Otherwise
    strings are removed and the levels counted, in time linear in the text.
    """
    if len(text) <= 2 * levels or text.count(b"{") + text.count(b"[") <= levels:
        return False
    steps = _STRING.sub(b"", text).translate(_AS_STEPS, _NO_BRACKETS)
    return max(itertools.accumulate(memoryview(steps).cast("b")), default=0) > levels


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_AS_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: 1 down, -1 up
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _finite(number: str) -> float | None:
    found = float(number)
    return found if math.isfinite(found) else None


# The standard library's writer, as oslo.messaging uses it: ASCII, spaces after separators.
# A cycle ends in RecursionError, which is cheaper than checking for cycles.
_encode = json.JSONEncoder(check_circular=False, allow_nan=False, default=json_values.simplify).encode
# Old senders write NaN and Infinity, which are not JSON: they are read as null, as we write them
# now. So is a number too large for a float, such as 1e999, which orjson refuses.
_decode = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite).decode
_encode_unicode = json.JSONEncoder(check_circular=False, ensure_ascii=False).encode


def dump_primitives(value: Any) -> bytes:
    """Write what ``json_values.convert`` returned."""
    return _encode(value).encode()


def _standard_dumps(value: Any) -> bytes:
    text = _encode(value).encode()
    # Either half of a surrogate pair, which is not text, or a character that needs a pair.
    if b"\\ud" in text:
        raise ValueError("perhaps not Unicode")
    if exceeds(text, json_values.MAX_DEPTH):
        raise ValueError("perhaps nested too deeply")
    return text


def _standard_loads(data: bytes) -> Any:
    text = data.decode()
    value = _decode(text)
    if "\\u" in text and _HALF_PAIR.search(text):
        _encode_unicode(value).encode()  # raises unless the other half is there
    return value


_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")

STANDARD = JsonLibrary("json", _standard_dumps, dump_primitives, _standard_loads, _standard_loads)


@functools.cache
def fastest() -> JsonLibrary:
    """Return the fastest library that is installed."""
    return STANDARD if orjson is None else _orjson()


def _orjson() -> JsonLibrary:
    # Passed through to simplify: the types that orjson would write differently from our rules.
    passed = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
    options = passed | orjson.OPT_PASSTHROUGH_SUBCLASS
    write, read, simplify = orjson.dumps, orjson.loads, json_values.simplify

    def dumps(value: Any) -> bytes:
        text = write(value, simplify, options)
        # Checked here first: most texts have few brackets, and a call costs as much as the count.
        brackets = text.count(b"{") + text.count(b"[")
        if brackets > json_values.MAX_DEPTH and exceeds(text, json_values.MAX_DEPTH):
            raise ValueError("perhaps nested too deeply")
        return text

    def skim(data: bytes) -> Any:
        try:
            return read(data)
        except ValueError:
            return _standard_loads(data)

    def loads(data: bytes) -> Any:
        # orjson reads an integer beyond 64 bits as a float; such integers have 19 digits or more.
        if _NINETEEN_DIGITS in data.translate(_AS_ZEROS):
            return _standard_loads(data)
        try:
            return read(data)
        except ValueError:
            return _standard_loads(data)

    return JsonLibrary("orjson", dumps, write, loads, skim)


_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_NINETEEN_DIGITS = b"0" * 19
