"""The wire formats: notifications to bytes and back.

``envelope`` is oslo.messaging's format, byte for byte when the standard library writes it.
orjson leaves out spaces and writes UTF-8 instead of escapes, which means the same.
``flat`` is only the inner object of the envelope. CloudEvents have a module of their own.

The format of each record is found by its ``ce_*`` headers, then its content type, then the
members of its object. These are accepted: an absent or null ``_context``, absent members
except the priority, the priority in upper or lower case, NaN and Infinity (as null; old
senders write them), numbers too large for a float (as null), integers of any size. Extra
members and headers are ignored. If a name occurs twice, the last one counts. Everything else
is a ``DecodeError`` with the reason.
"""

import functools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from notifier_kafka.contract.driver import Headers, Record
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import PRIORITIES, Notification, make_notification
from notifier_kafka.wire import cloudevents, json_library, json_values

Form = Literal["envelope", "flat", "cloudevents-binary", "cloudevents-structured"]
Dumps = Callable[[Any], bytes]
Header = tuple[str, bytes]

VERSION_MEMBER = "oslo.version"
MESSAGE_MEMBER = "oslo.message"
VERSION = "2.0"

MAX_READ_DEPTH = 500
"""Levels of JSON that are read: more than are written, fewer than Python's stack can take."""

_ENVELOPE_START = f'{{"{VERSION_MEMBER}": "{VERSION}", "{MESSAGE_MEMBER}": '.encode()
_JSON = ("content-type", b"application/json")
_STRUCTURED = ("content-type", cloudevents.STRUCTURED_TYPE)
_TEXTS = ("message_id", "publisher_id", "event_type", "timestamp")
_MEMBERS = ("message_id", "publisher_id", "event_type", "priority", "payload", "timestamp", "_context")
_members = operator.itemgetter(*_MEMBERS)
_PRIORITY_HEADERS = {name.upper(): ("priority", name.upper().encode()) for name in PRIORITIES}


class Encoded(NamedTuple):
    value: bytes
    headers: Headers


# The constructor of a named tuple is Python code. This makes the same without it, faster.
_make_encoded: partial[Any] = partial(tuple.__new__, Encoded)


class Codec:
    """Encodes and decodes with one JSON library. The functions of this module use the fastest one."""

    def __init__(self, library: json_library.JsonLibrary) -> None:
        _name, self._dumps, self._quote, self._loads, self._skim = library

    def encode(self, notification: Notification, form: Form, key: bytes | None = None) -> Encoded:
        """Return the value and the headers of a record in ``form``.

        Raises ``EncodeError``, which names the wrong member and its type, never its value.
        """
        try:
            return self._write(notification, form, key, self._dumps)
        except EncodeError:
            raise
        except Exception:  # noqa: BLE001 - the conversion repairs it, or finds the wrong member
            converted = _converted(notification)
        return self._write(converted, form, key, json_library.dump_primitives)

    def decode(self, record: Record) -> Notification:
        """Return the notification in a record of any form. Raises ``DecodeError``."""
        if not record.value:
            raise DecodeError("a tombstone" if record.value is None else "an empty value")
        try:
            return _notification(self._read(record.value, record.headers))
        except DecodeError:
            raise
        except UnicodeError:
            raise DecodeError("not Unicode text") from None
        except (ValueError, RecursionError):
            raise DecodeError("not JSON") from None

    def _read(self, value: bytes, headers: Headers) -> dict[str, Any]:
        """Return the members of the notification, whatever the form of the record."""
        form = cloudevents.form_of(headers) if headers else None
        if form is None and value.startswith(_ENVELOPE_START):
            # The numbers that matter are in the inner text, which is parsed next.
            return self._open(self._skim(value))
        found = self._parse(value)
        if form == "binary":
            return cloudevents.from_binary(headers, found, self._parse)
        if type(found) is not dict:
            raise DecodeError("the value is not a JSON object")
        if form == "structured" or (MESSAGE_MEMBER not in found and cloudevents.is_structured(found)):
            return cloudevents.from_structured(found, self._parse)
        return self._open(found) if VERSION_MEMBER in found else found

    def _open(self, envelope: dict[str, Any]) -> dict[str, Any]:
        if envelope[VERSION_MEMBER] != VERSION:
            raise DecodeError(f"the envelope's version is not {VERSION}")
        message = envelope.get(MESSAGE_MEMBER)
        if type(message) is not str:
            raise DecodeError(f"the envelope's {MESSAGE_MEMBER} is not text")
        found = self._parse(message.encode())
        if type(found) is not dict:
            raise DecodeError(f"the envelope's {MESSAGE_MEMBER} is not a JSON object")
        return found

    def _parse(self, data: bytes) -> Any:
        value = self._loads(data)
        # The length is checked here first: most texts are short, and a call costs more.
        if len(data) > 2 * MAX_READ_DEPTH and json_library.exceeds(data, MAX_READ_DEPTH):
            raise DecodeError(f"nested beyond {MAX_READ_DEPTH} levels")
        return value

    def _write(self, notification: Notification, form: Form, key: bytes | None, dumps: Dumps) -> Encoded:
        message_id, publisher_id, event_type, priority, payload, timestamp, context = notification
        if type(context) is not dict or not (timestamp is None or type(timestamp) is str):
            raise TypeError("to be converted")
        first, last = _headers(publisher_id, event_type, priority)
        own = () if message_id is None else (("message-id", message_id.encode()),)
        headers = (*first, *own, *last)
        if form == "cloudevents-binary":
            return Encoded(dumps(payload), cloudevents.headers(notification, key, dumps))
        if form == "cloudevents-structured":
            value = dumps(cloudevents.members(notification, key, dumps))
            return Encoded(value, (_STRUCTURED, *headers[1:]))
        value = dumps(
            {
                "message_id": message_id,
                "publisher_id": publisher_id,
                "event_type": event_type,
                "priority": priority,
                "payload": payload,
                "timestamp": timestamp,
                "_context": context,
            }
        )
        if form == "envelope":
            value = b"%b%b}" % (_ENVELOPE_START, self._quote(value.decode()))
        encoded: Encoded = _make_encoded((value, headers))
        return encoded


# A sender has few publishers and event types.
@functools.lru_cache(maxsize=1024)
def _headers(publisher_id: str | None, event_type: str | None, priority: str) -> tuple[Headers, Headers]:
    """Return the headers before the message id and those after it."""
    named = (("event-type", event_type), ("publisher-id", publisher_id))
    last = tuple((name, text.encode()) for name, text in named if text is not None)
    return (_JSON, _PRIORITY_HEADERS[priority]), last


def _converted(notification: Notification) -> Notification:
    """Convert every member to JSON values. Raises ``EncodeError`` for one that cannot be converted."""
    if notification.priority not in list(_PRIORITY_HEADERS):
        raise EncodeError(f"priority: not one of {', '.join(_PRIORITY_HEADERS)}")
    texts = {name: json_values.convert(getattr(notification, name), name) for name in _TEXTS}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise EncodeError(f"{name}: text is needed, not {type(getattr(notification, name)).__name__}")
    context = json_values.convert(notification.context or {}, "context")
    if not isinstance(context, dict):
        raise EncodeError(f"context: an object is needed, not {type(notification.context).__name__}")
    payload = json_values.convert(notification.payload, "payload")
    return notification._replace(**texts, context=context, payload=payload)


def _notification(found: dict[str, Any]) -> Notification:
    try:
        members = _members(found)
    except KeyError:
        members = tuple(map(found.get, _MEMBERS))
    message_id, publisher_id, event_type, priority, payload, timestamp, context = members
    if not type(message_id) is type(publisher_id) is type(event_type) is type(timestamp) is str:
        _check_texts(message_id, publisher_id, event_type, timestamp)
    if context is None:
        context = {}
    elif type(context) is not dict:
        raise DecodeError("the context is not a JSON object")
    # Nearly always in upper case, as we write it.
    if type(priority) is not str or priority not in _PRIORITY_HEADERS:
        priority = _priority(priority)
    made: Notification = make_notification(
        (message_id, publisher_id, event_type, priority, payload, timestamp, context)
    )
    return made


def _check_texts(*found: Any) -> None:
    if not all(text is None or isinstance(text, str) for text in found):
        raise DecodeError("the message id, publisher, event type or timestamp is not text")


def _priority(found: Any) -> str:
    if not isinstance(found, str):
        raise DecodeError("no priority, so not a notification")
    if found.upper() not in _PRIORITY_HEADERS:
        raise DecodeError("unknown priority")
    return found.upper()


_codec = Codec(json_library.fastest())
encode = _codec.encode
decode = _codec.decode
