"""Which JSON library is used, chosen here and nowhere else: orjson when it is there.

Both do the same. The fast one may refuse more, and what it refuses goes the standard
way; a test holds the two against each other.
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
    """A few functions over JSON text in UTF-8.

    ``dumps`` converts by the rules of ``primitives``. Whatever it raises means: convert
    with ``primitives.convert`` first, which also knows what is wrong and where, and then
    write the outcome with ``dump_primitives``. ``quote`` writes a str that has no halves of
    surrogate pairs.
    ``loads`` raises ``ValueError`` or ``RecursionError`` for what is not JSON. ``skim`` does
    so faster, for text whose numbers do not matter.
    """

    name: str
    dumps: Callable[[Any], bytes]
    quote: Callable[[str], bytes]
    loads: Callable[[bytes], Any]
    skim: Callable[[bytes], Any]


def exceeds(text: bytes, levels: int) -> bool:
    """Tell whether valid JSON nests deeper than ``levels``.

    Few bytes or brackets cannot nest deeply, which settles nearly every case. Otherwise
    strings are dropped and the levels counted, in one pass whoever wrote it.
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
# Cycles end in RecursionError, for less than looking out for them costs.
_encode = json.JSONEncoder(check_circular=False, allow_nan=False, default=json_values.simplify).encode
# Old senders write NaN and Infinity, which are no JSON: read as they are now written, null. So
# is a number beyond what a float holds, such as 1e999, which orjson refuses.
_decode = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite).decode
_encode_unicode = json.JSONEncoder(check_circular=False, ensure_ascii=False).encode


def dump_primitives(value: Any) -> bytes:
    """Write what ``primitives.convert`` returned."""
    return _encode(value).encode()


def _standard_dumps(value: Any) -> bytes:
    text = _encode(value).encode()
    # Either one half of a pair, which is no text, or a character that needs a pair.
    if b"\\ud" in text:
        raise ValueError("perhaps no Unicode")
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
    # Passed through are the types that orjson would write in another way than our rules.
    passed = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
    options = passed | orjson.OPT_PASSTHROUGH_SUBCLASS
    write, read, simplify = orjson.dumps, orjson.loads, json_values.simplify

    def dumps(value: Any) -> bytes:
        text = write(value, simplify, options)
        # Asked here first: nearly all have few brackets, and a call costs as much as the count.
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
        # orjson makes a float of an integer beyond 64 bits: negative ones have 19 digits.
        if _NINETEEN_DIGITS in data.translate(_AS_ZEROS):
            return _standard_loads(data)
        try:
            return read(data)
        except ValueError:
            return _standard_loads(data)

    return JsonLibrary("orjson", dumps, write, loads, skim)


_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_NINETEEN_DIGITS = b"0" * 19
