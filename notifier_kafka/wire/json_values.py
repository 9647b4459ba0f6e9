"""How values that JSON does not know are converted: all rules in one place.

==================================  ==============================================
datetime                            ISO 8601 with microseconds; an aware one keeps its offset
date                                ISO 8601
set, frozenset, tuple, namedtuple,  array
other sized collections
anything with items(), dataclass    object
bytes, bytearray                    text, if they are UTF-8
Decimal, UUID, IP addresses         text
enum member                         its value
exception                           its repr
NaN and the infinities              null
keys                                text, by the same rules; ``true``, ``false``, ``null``, ``NaN``
==================================  ==============================================

Integers of any size are kept as Python writes them. Anything else is refused with
``EncodeError``: other objects, halves of surrogate pairs, cycles, more than ``MAX_DEPTH``
levels, and iterators, because they can be read only once.
"""

import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections.abc import Callable, Collection, Iterable
from typing import Any

from notifier_kafka.errors import EncodeError

MAX_DEPTH = 254
"""Levels of objects and arrays in a payload: as many as orjson writes, and fewer than readers
and Python's own stack can take."""

_MAX_PATH_STEPS = 8
_MAX_KEY_CHARACTERS = 40

# By name, so that these modules need not be imported.
_WRITTEN_AS_TEXT = {
    *(f"ipaddress.IPv{v}{kind}" for v in (4, 6) for kind in ("Address", "Network", "Interface")),
    *(f"netaddr.ip.{kind}" for kind in ("IPAddress", "IPNetwork", "IPRange")),
}


Rule = Callable[[Any], Any]


def convert(value: Any, name: str, *, instances: bool = False) -> Any:
    """Return a deep copy of ``value`` made of dict, list, str, int, float, bool and None.

    The path in an error begins with ``name``. Errors never contain the value. With
    ``instances`` an object for which there is no rule becomes a dict of its attributes.
    """
    try:
        return _walk(value, 0, simplify_instance if instances else simplify)
    except _Refused as refused:
        raise EncodeError(f"{name}{refused.path()}: {refused.reason}") from None
    except RecursionError:
        raise EncodeError(f"{name}: nested too deeply for the stack") from None


def simplify(value: Any) -> Any:
    """Convert the outermost level of a value that JSON does not know.

    Raises ``TypeError`` when there is no rule, and whatever the value's own code raises.
    """
    builtin = _plain(value)
    if builtin is not None:
        return builtin
    if isinstance(value, enum.Enum):
        return value.value
    text = _text(value)
    if text is not None:
        return text
    if isinstance(value, type):
        raise TypeError
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(getattr(value, "items", None)):
        return dict(value.items())
    if isinstance(value, Collection):
        return list(value)
    raise TypeError


def simplify_instance(value: Any) -> Any:
    """Convert as ``simplify`` does, and any other instance to a dict of its attributes."""
    try:
        return simplify(value)
    except TypeError:
        if isinstance(value, type) or not hasattr(value, "__dict__") or callable(value):
            raise
        return dict(vars(value))


def _plain(value: Any) -> Any:
    """Return an instance of a subclass as the built-in type, as json writes it."""
    if isinstance(value, dict):
        return dict(value.items())
    for kind, copy in _COPIES:
        if isinstance(value, kind):
            return copy(value)
    return None


_COPIES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (list, list),
    (tuple, list),
)


def _text(value: Any) -> str | None:
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, uuid.UUID | decimal.Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return value.decode()
    if isinstance(value, BaseException):
        return repr(value)
    kind = type(value)
    return str(value) if f"{kind.__module__}.{kind.__qualname__}" in _WRITTEN_AS_TEXT else None


class _Refused(Exception):
    """A value cannot be converted. Each level adds its step to the path, from the inside out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []

    def path(self) -> str:
        steps = self.steps[::-1]
        return "".join(steps[:_MAX_PATH_STEPS]) + ("..." if len(steps) > _MAX_PATH_STEPS else "")


def _walk(value: Any, depth: int, rule: Rule) -> Any:
    kind = type(value)
    if kind is dict:
        return _object(value, depth + 1, rule)
    if kind is list or kind is tuple:
        return _array(value, depth + 1, rule)
    check = _CHECKS.get(kind)
    return check(value) if check else _walk(_simplified(value, rule), depth, rule)


def _object(value: dict[Any, Any], depth: int, rule: Rule) -> dict[str, Any]:
    _check_depth(depth)
    converted = {}
    # A copy first: another thread may change the dict.
    for key, member in list(value.items()):
        try:
            converted[_key(key)] = _walk(member, depth, rule)
        except _Refused as refused:
            refused.steps.append(_step(key))
            raise
    return converted


def _array(value: Iterable[Any], depth: int, rule: Rule) -> list[Any]:
    _check_depth(depth)
    converted: list[Any] = []
    for member in value:
        try:
            converted.append(_walk(member, depth, rule))
        except _Refused as refused:
            refused.steps.append(f"[{len(converted)}]")
            raise
    return converted


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Refused(f"nested beyond {MAX_DEPTH} levels, or contains itself")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _unicode(str.__str__(key))
    if key is None or isinstance(key, bool | float):
        return json.dumps(key)
    if isinstance(key, int):
        return _digits(key)
    simple = _simplified(key, simplify)
    if isinstance(simple, dict | list):
        raise _Refused(f"a key of type {_type_name(key)} cannot be written as JSON")
    return _key(simple)


def _simplified(value: Any, rule: Rule) -> Any:
    try:
        return rule(value)
    except UnicodeDecodeError:
        raise _Refused(f"{_type_name(value)} that is not UTF-8 text") from None
    except TypeError:
        raise _Refused(f"a value of type {_type_name(value)} cannot be written as JSON") from None
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001 - code of the user's class runs here
        reason = f"a value of type {_type_name(value)} raised {_type_name(error)} when it was read"
        raise _Refused(reason) from None


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("a str with half of a surrogate pair") from None
    return text


def _digits(number: int) -> str:
    try:
        return int.__repr__(number)
    except ValueError:
        raise _Refused("an int with more digits than Python writes as text") from None


def _number(value: int) -> int:
    _digits(value)
    return value


_CHECKS: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: _unicode,
    int: _number,
    float: lambda value: value if math.isfinite(value) else None,
}


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _step(key: Any) -> str:
    if not isinstance(key, str):
        return f"[{_type_name(key)} key]"
    if key.isidentifier() and len(key) <= _MAX_KEY_CHARACTERS:
        return f".{key}"
    return f"[{str.__str__(key)[:_MAX_KEY_CHARACTERS]!a}]"
