import uuid
from typing import Any

import pytest

from notifier_kafka.errors import ConfigurationError, DriverNotFound, EncodeError
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import ordering_keys


def notification(payload: Any = None, publisher_id: str | None = "compute.host1") -> Notification:
    return Notification("m", publisher_id, "compute.create", "INFO", payload, "2026-01-01 00:00:00", {})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("publisher_id", b"compute.host1"),
        ("event_type", b"compute.create"),
        ("none", None),
        (None, None),
        ("payload:name", "é".encode()),
        ("payload:instance.id", b"17"),
        ("payload:instance", None),
        ("payload:absent", None),
        ("payload:absent.id", None),
        ("payload:name.id", None),
        ("payload:list", None),
        ("payload:uuid", b"00000000-0000-0000-0000-000000000001"),
        ("payload:raw", b"\xff"),
    ],
)
def test_a_built_in_key_is_found_by_name(spec: str | None, expected: bytes | None) -> None:
    payload = {
        "name": "é",
        "instance": {"id": 17},
        "list": [1],
        "uuid": uuid.UUID(int=1),
        "raw": b"\xff",
    }
    assert ordering_keys.load(spec)(notification(payload)) == expected


@pytest.mark.parametrize("payload", [None, 3, "text", [1]])
def test_a_payload_without_members_asks_for_no_order(payload: Any) -> None:
    assert ordering_keys.load("payload:id")(notification(payload)) is None


def test_a_missing_publisher_asks_for_no_order() -> None:
    assert ordering_keys.load("publisher_id")(notification(publisher_id=None)) is None


def test_a_callable_is_a_key() -> None:
    assert ordering_keys.load(lambda n: n.priority)(notification()) == b"INFO"
    assert ordering_keys.load(lambda _: b"raw")(notification()) == b"raw"


def test_a_lone_surrogate_still_makes_a_key() -> None:
    assert ordering_keys.load("publisher_id")(notification(publisher_id="\ud800")) == b"\xed\xa0\x80"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("payload", "needs an argument, as in payload:FIELD"),
        ("payload:", "needs an argument, as in payload:FIELD"),
        ("publisher_id:x", "takes no argument"),
    ],
)
def test_a_wrong_argument_is_refused_when_loaded(spec: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ordering_keys.load(spec)


def test_an_unknown_name_is_refused_when_loaded() -> None:
    with pytest.raises(DriverNotFound, match="publisher"):
        ordering_keys.load("publisher")


def test_what_a_key_function_does_wrong_names_the_function_only() -> None:
    def broken(sent: Notification) -> str:
        raise ValueError(f"secret of {sent.payload}")

    def wrong(_: Notification) -> Any:
        return 5

    with pytest.raises(EncodeError, match=r"^key 'broken' failed: ValueError$"):
        ordering_keys.load(broken)(notification("payload"))
    with pytest.raises(EncodeError, match=r"^key 'wrong' returned int: "):
        ordering_keys.load(wrong)(notification())
