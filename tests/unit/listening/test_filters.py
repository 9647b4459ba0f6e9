import re
from typing import Any

import pytest

from notifier_kafka.errors import ConfigurationError
from notifier_kafka.listening.filters import NotificationFilter

CONTEXT = {"tenant": "5f64", "roles": "private", "retries": 3}
METADATA = {"message_id": "m-1", "timestamp": "2026-08-01 00:00:00"}
PAYLOAD = {"state": "active", "size": 10, "none": None}


def matches(rules: dict[str, Any], **changes: Any) -> bool:
    fields: dict[str, Any] = {
        "context": CONTEXT,
        "publisher_id": "compute.host1",
        "event_type": "compute.instance.create.end",
        "metadata": METADATA,
        "payload": PAYLOAD,
    }
    return NotificationFilter(**rules).match(**(fields | changes))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, True),
        ({"event_type": "compute"}, True),
        ({"event_type": "instance"}, False),  # from the start of the text
        ({"event_type": r".*\.end$"}, True),
        ({"publisher_id": "^compute", "event_type": "^network"}, False),
        ({"context": {"tenant": "^5f", "roles": "priv"}}, True),
        ({"context": {"tenant": "^5f", "roles": "public"}}, False),
        ({"context": {"absent": ""}}, False),
        ({"context": {"retries": "3"}}, False),
        ({"metadata": {"timestamp": "2026-08"}}, True),
        ({"payload": {"state": "^active$"}}, True),
        ({"payload": {"size": "10"}}, False),
        ({"payload": {"none": ""}}, False),
        ({"payload": {}}, True),
        ({"event_type": re.compile("COMPUTE", re.IGNORECASE)}, True),
    ],
)
def test_every_rule_has_to_match(rules: dict[str, Any], expected: bool) -> None:
    assert matches(rules) is expected


@pytest.mark.parametrize("payload", [None, 5, "state", ["state"], True, object()])
def test_a_payload_without_members_does_not_match_a_payload_rule(payload: Any) -> None:
    assert not matches({"payload": {"state": ""}}, payload=payload)
    assert matches({"event_type": "compute"}, payload=payload)


@pytest.mark.parametrize("value", [None, 5, b"compute", ["compute"]])
def test_a_field_that_is_not_text_does_not_match(value: Any) -> None:
    assert not matches({"event_type": ""}, event_type=value)
    assert not matches({"publisher_id": ""}, publisher_id=value)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"event_type": "("}, ["event_type", "'('", "unterminated subpattern"]),
        ({"payload": {"state": "*"}}, ["payload['state']", "nothing to repeat"]),
        ({"publisher_id": 5}, ["publisher_id", "int"]),
        ({"publisher_id": b"x"}, ["publisher_id", "bytes"]),
        ({"event_type": re.compile(b"x")}, ["event_type", "bytes"]),
        ({"context": "tenant"}, ["context", "str", "dict"]),
        ({"metadata": {"timestamp": None}}, ["metadata['timestamp']", "NoneType"]),
    ],
)
def test_a_bad_rule_is_refused_when_the_filter_is_made(rules: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NotificationFilter(**rules)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)
