"""CloudEvents 1.0 over Kafka, binary and structured.

``id``, ``type``, ``source`` and ``time`` are the notification's message id, event type,
publisher (percent-encoded) and timestamp. The extensions are ``priority``, ``partitionkey``
and, if there is a context, ``context`` as JSON text. The specification requires id, type and
source: a notification without message id or event type is refused; one without a publisher
gets the source ``about:blank``, which is read as null. Events of other senders are read too;
without the extension ``priority`` they have priority INFO.
"""

import datetime
import re
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import quote, unquote

from notifier_kafka.contract.driver import Headers
from notifier_kafka.errors import DecodeError, EncodeError
from notifier_kafka.notification import Notification

STRUCTURED_TYPE = b"application/cloudevents+json"

_PREFIX = "ce_"
_REQUIRED = ("specversion", "id", "type", "source")
_NOBODY = "about:blank"
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)")

Dumps = Callable[[Any], bytes]
Parse = Callable[[bytes], Any]


def headers(notification: Notification, key: bytes | None, dumps: Dumps) -> Headers:
    """Return the headers of a binary event; its value is the payload."""
    attributes = _attributes(notification, key, dumps)
    named = ((_PREFIX + name, text.encode()) for name, text in attributes.items())
    return (("content-type", b"application/json"), *named)


def members(notification: Notification, key: bytes | None, dumps: Dumps) -> dict[str, Any]:
    """Return the object that is a structured event."""
    attributes = _attributes(notification, key, dumps)
    return {**attributes, "datacontenttype": "application/json", "data": notification.payload}


def form_of(headers: Headers) -> Literal["binary", "structured"] | None:
    """Say which form of CloudEvent the headers of a record announce, if any."""
    form: Literal["structured"] | None = None
    for name, value in headers:
        if name == "ce_specversion":
            return "binary"
        if name == "content-type" and value and value.startswith(STRUCTURED_TYPE):
            form = "structured"
    return form


def is_structured(found: dict[str, Any]) -> bool:
    """Say whether an object has the members of a structured event."""
    return "specversion" in found and all(name in found for name in _REQUIRED)


def from_binary(headers: Headers, payload: Any, parse: Parse) -> dict[str, Any]:
    """Return the members of a notification from a binary event."""
    try:
        found = {
            name.removeprefix(_PREFIX): value.decode()
            for name, value in headers
            if name.startswith(_PREFIX) and value is not None
        }
    except UnicodeError:
        raise DecodeError("a header of the CloudEvent is not Unicode text") from None
    return _from_attributes(found, payload, parse)


def from_structured(found: dict[str, Any], parse: Parse) -> dict[str, Any]:
    """Return the members of a notification from a structured event."""
    if "data_base64" in found:
        raise DecodeError("the CloudEvent's data is not JSON")
    return _from_attributes(found, found.get("data"), parse)


def _attributes(notification: Notification, key: bytes | None, dumps: Dumps) -> dict[str, str]:
    if not notification.message_id or not notification.event_type:
        raise EncodeError("a CloudEvent needs a message_id and an event_type")
    publisher = notification.publisher_id
    attributes = {
        "specversion": "1.0",
        "id": notification.message_id,
        "type": notification.event_type,
        "source": quote(publisher, safe="/") if publisher else _NOBODY,
        "priority": notification.priority,
    }
    if notification.timestamp:
        attributes["time"] = _zoned(notification.timestamp)
    if key:
        # The attribute is text. The record's own key has the exact bytes.
        attributes["partitionkey"] = key.decode(errors="replace")
    if notification.context:
        attributes["context"] = dumps(notification.context).decode()
    return attributes


def _from_attributes(found: dict[str, Any], payload: Any, parse: Parse) -> dict[str, Any]:
    for name in _REQUIRED:
        if not isinstance(found.get(name), str):
            raise DecodeError(f"the CloudEvent's {name} is missing or not text")
    if not found["specversion"].startswith("1."):
        raise DecodeError("the CloudEvent's version is not 1.x")
    source, context = found["source"], found.get("context")
    return {
        "message_id": found["id"],
        "event_type": found["type"],
        "publisher_id": None if source == _NOBODY else unquote(source),
        "priority": found.get("priority", "INFO"),
        "timestamp": _naive(found.get("time")),
        "payload": payload,
        "_context": parse(context.encode()) if isinstance(context, str) else None,
    }


def _zoned(timestamp: str) -> str:
    match = _TIMESTAMP.fullmatch(timestamp)
    if match is None:
        raise EncodeError("timestamp: not of the form YYYY-MM-DD HH:MM:SS.ffffff")
    return f"{match[1]}T{match[2]}Z"


def _naive(time: Any) -> Any:
    """Return the time in UTC as notifications have it, or unchanged if it is not a time."""
    try:
        moment = datetime.datetime.fromisoformat(time)
        return str(moment.astimezone(datetime.UTC).replace(tzinfo=None))
    except (ValueError, TypeError, OverflowError):
        return time
