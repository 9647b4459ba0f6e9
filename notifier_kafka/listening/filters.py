"""Filters of endpoints: oslo.messaging's NotificationFilter."""

import re
from collections.abc import Mapping
from typing import Any

from notifier_kafka.errors import ConfigurationError

Rules = Mapping[str, "re.Pattern[str]"]

# dict first: it is nearly always one, and isinstance() of Mapping alone costs four times as much.
_OBJECTS = (dict, Mapping)


class NotificationFilter:
    r"""Regular expressions over the fields of a notification, as an endpoint's ``filter_rule``.

    Each is matched at the start of the text (``re.match``); members of ``context``,
    ``metadata`` and ``payload`` are named by key::

        NotificationFilter(publisher_id=r"^compute\.", payload={"state": "^active$"})

    A field that is absent or not text matches no rule.
    """

    def __init__(
        self,
        context: Mapping[str, str] | None = None,
        publisher_id: str | None = None,
        event_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
        payload: Mapping[str, str] | None = None,
    ) -> None:
        self._publisher_id = None if publisher_id is None else _compile("publisher_id", publisher_id)
        self._event_type = None if event_type is None else _compile("event_type", event_type)
        self._context = _compile_members("context", context)
        self._metadata = _compile_members("metadata", metadata)
        self._payload = _compile_members("payload", payload)

    def match(self, context: Any, publisher_id: Any, event_type: Any, metadata: Any, payload: Any) -> bool:
        """Say whether every rule matches. Never raises, whatever the fields contain."""
        return (
            (self._event_type is None or _matches(self._event_type, event_type))
            and (self._publisher_id is None or _matches(self._publisher_id, publisher_id))
            and (not self._context or _all_match(self._context, context))
            and (not self._metadata or _all_match(self._metadata, metadata))
            and (not self._payload or _all_match(self._payload, payload))
        )


def _matches(rule: "re.Pattern[str]", value: Any) -> bool:
    return isinstance(value, str) and rule.match(value) is not None


def _all_match(rules: Rules, members: Any) -> bool:
    # A payload is any JSON value: a number or a list has no members to look at.
    if not isinstance(members, _OBJECTS):
        return False
    for name, rule in rules.items():  # noqa: SIM110 - a generator costs as much as a match
        if name not in members or not _matches(rule, members[name]):
            return False
    return True


def _compile_members(field: str, rules: Any) -> Rules:
    if rules is None:
        return {}
    if not isinstance(rules, Mapping):
        raise ConfigurationError(
            f"filter rule {field}: needs a dict of member to regular expression, not {type(rules).__name__}"
        )
    return {name: _compile(f"{field}[{name!r}]", rule) for name, rule in rules.items()}


def _compile(field: str, rule: Any) -> "re.Pattern[str]":
    text = rule.pattern if isinstance(rule, re.Pattern) else rule
    # A pattern of bytes compiles too, but would raise at the first notification.
    if not isinstance(text, str):
        raise ConfigurationError(
            f"filter rule {field}: needs a regular expression (text), not {type(text).__name__}"
        )
    try:
        return re.compile(rule)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigurationError(f"filter rule {field}, {text!r}: {error}") from error
