"""Ordering keys: notifications with the same key stay in order.

A key function takes a notification and returns text, bytes or None (no order needed).
The built-in functions are entry points of ``notifier_kafka.keys``. ``load`` finds one by
name and wraps it for the channels.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from notifier_kafka.contract import plugins
from notifier_kafka.errors import ConfigurationError, EncodeError
from notifier_kafka.notification import Notification

NAMESPACE = "notifier_kafka.keys"

KeyFunction = Callable[[Notification], str | bytes | None]
Key = Callable[[Notification], bytes | None]

# Nearly always a dict; checking for Mapping only takes four times as long.
_OBJECTS = (dict, Mapping)


def publisher_id(notification: Notification) -> str | None:
    """Keep the order of one publisher's notifications."""
    return notification.publisher_id


def event_type(notification: Notification) -> str | None:
    """Keep the order of notifications of one event type."""
    return notification.event_type


def none(notification: Notification) -> None:
    """Keep no order: notifications are spread over the partitions."""


def payload(notification: Notification, field: str) -> str | bytes | None:
    """Order by a member of the payload; dots lead into nested objects (``payload:instance.id``).

    Numbers and other scalars are used as text. If the member is missing, or is an object or a
    list, there is no order.
    """
    value = notification.payload
    for name in field.split("."):
        if not isinstance(value, _OBJECTS):
            return None
        value = value.get(name)
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return None
    return str(value)


def load(spec: str | KeyFunction | None) -> Key:
    """Find a key function: ``name`` or ``name:ARGUMENT`` of an entry point, or a callable.

    None is the same as ``none``. An error in the function, or a wrong return value, is raised
    as ``EncodeError`` in the call that sends.
    """
    if spec is None:
        return none
    if callable(spec):
        return _checked(getattr(spec, "__name__", type(spec).__name__), spec)
    name, colon, argument = spec.partition(":")
    function = plugins.load(NAMESPACE, name)
    arguments = (argument,) if colon else ()
    if (colon and not argument) or not _accepts(function, len(arguments)):
        needed = "takes no argument" if argument else f"needs an argument, as in {name}:FIELD"
        raise ConfigurationError(f"key {spec!r}: {name} {needed}")
    bound: KeyFunction = (lambda notification: function(notification, argument)) if colon else function
    return _checked(spec, bound)


def _accepts(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(None, *[""] * arguments)
    except TypeError:
        return False
    except ValueError:  # some C functions have no signature: the call will show it
        return True
    return True


def _checked(name: str, function: KeyFunction) -> Key:
    def key(notification: Notification) -> bytes | None:
        try:
            value = function(notification)
        except Exception as error:
            raise EncodeError(f"key {name!r} failed: {type(error).__name__}") from error
        if isinstance(value, str):
            return _encode(value)
        if value is None or type(value) is bytes:
            return value
        raise EncodeError(f"key {name!r} returned {type(value).__name__}: text, bytes or None is needed")

    return key


# There are few publishers and event types, and they repeat.
@functools.lru_cache(maxsize=1024)
def _encode(text: str) -> bytes:
    # A key only has to be the same each time, so a lone surrogate is not an error.
    return text.encode("utf-8", "surrogatepass")
