"""Which JSON library is used, chosen here and nowhere else: orjson when it is there.

Both do the same. The fast one may refuse more, and what it refuses goes the standard
way; a test holds the two against each other.
"""

import functools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from notifier_kafka import primitives

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]


class JsonLibrary(NamedTuple):
    """A pair of functions over JSON text in UTF-8.

    ``dumps`` converts by the rules of ``primitives``. Whatever it raises means: convert
    with ``primitives.convert`` first, which also knows what is wrong and where, and then
    write the outcome with ``dump_primitives``.
    ``loads`` raises ``ValueError`` or ``RecursionError`` for what is not JSON.
    """

    name: str
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


def exceeds(text: bytes, levels: int) -> bool:
    """Tell whether valid JSON nests deeper than ``levels``.

    Few brackets cannot nest deeply, which settles nearly every case. Otherwise strings are
    dropped and the innermost brackets taken away, a level at a time.
    """
    if text.count(b"{") + text.count(b"[") <= levels:
        return False
    shape = _STRING.sub(b"", text).translate(_AS_CURLY, _NO_BRACKETS)
    for _ in range(levels):
        if not shape:
            return False
        shape = shape.replace(b"{}", b"")
    return bool(shape)


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_AS_CURLY = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


# The standard library's writer, as oslo.messaging uses it: ASCII, spaces after separators.
# Cycles end in RecursionError, for less than looking out for them costs.
_encode = json.JSONEncoder(check_circular=False, allow_nan=False, default=primitives.simplify).encode
# Old senders write NaN and Infinity, which are no JSON: read as they are now written, null.
_decode = json.JSONDecoder(parse_constant=lambda _: None).decode
_encode_unicode = json.JSONEncoder(check_circular=False, ensure_ascii=False).encode


def dump_primitives(value: Any) -> bytes:
    """Write what ``primitives.convert`` returned."""
    return _encode(value).encode()


def _standard_dumps(value: Any) -> bytes:
    text = _encode(value).encode()
    # Either one half of a pair, which is no text, or a character that needs a pair.
    if b"\\ud" in text:
        raise ValueError("perhaps no Unicode")
    if exceeds(text, primitives.MAX_DEPTH):
        raise ValueError("perhaps nested too deeply")
    return text


def _standard_loads(data: bytes) -> Any:
    text = data.decode()
    value = _decode(text)
    if "\\ud" in text or "\\uD" in text:
        _encode_unicode(value).encode()  # raises for one half of a pair
    return value


STANDARD = JsonLibrary("json", _standard_dumps, _standard_loads)


@functools.cache
def fastest() -> JsonLibrary:
    """Return the fastest library that is installed."""
    return STANDARD if orjson is None else _orjson()


def _orjson() -> JsonLibrary:
    # Passed through are the types that orjson would write in another way than our rules.
    passed = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
    options = passed | orjson.OPT_PASSTHROUGH_SUBCLASS
    write, read, simplify = orjson.dumps, orjson.loads, primitives.simplify

    def dumps(value: Any) -> bytes:
        text = write(value, simplify, options)
        if exceeds(text, primitives.MAX_DEPTH):
            raise ValueError("perhaps nested too deeply")
        return text

    def loads(data: bytes) -> Any:
        # orjson makes a float of an integer beyond 64 bits.
        zeros = data.translate(_AS_ZEROS)
        if _TWENTY_DIGITS in zeros or _NEGATIVE_NINETEEN in zeros:
            return _standard_loads(data)
        try:
            return read(data)
        except ValueError:
            return _standard_loads(data)

    return JsonLibrary("orjson", dumps, loads)


_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_TWENTY_DIGITS = b"0" * 20
_NEGATIVE_NINETEEN = b"-" + b"0" * 19
