import datetime
import inspect
from typing import Any

import pytest

from notifier_kafka.errors import EncodeError
from notifier_kafka.wire import serializer

METHODS = ["serialize_entity", "deserialize_entity", "serialize_context", "deserialize_context"]


def test_a_serializer_has_all_four_methods() -> None:
    assert sorted(serializer.Serializer.__abstractmethods__) == sorted(METHODS)
    for missing in METHODS:
        others = {name: lambda *_: None for name in METHODS if name != missing}
        with pytest.raises(TypeError, match=missing):
            type("Partial", (serializer.Serializer,), others)()


def test_the_arguments_are_oslo_messagings() -> None:
    for name in METHODS[:2]:
        assert list(inspect.signature(getattr(serializer.Serializer, name)).parameters)[1:] == [
            "ctxt",
            "entity",
        ]
    for name in METHODS[2:]:
        assert list(inspect.signature(getattr(serializer.Serializer, name)).parameters)[1:] == ["ctxt"]


def test_no_op_leaves_everything() -> None:
    entity, context = object(), object()
    hooks = serializer.NoOpSerializer()
    assert hooks.serialize_entity(context, entity) is entity
    assert hooks.deserialize_entity(context, entity) is entity
    assert hooks.serialize_context(context) is context
    assert hooks.deserialize_context(context) is context


def test_json_payload_converts_a_copy() -> None:
    entity: dict[Any, Any] = {
        "when": datetime.datetime(2026, 1, 2),
        "tags": ("a", {"b"}),
        "n": float("nan"),
        1: 2,
    }
    converted = serializer.JsonPayloadSerializer().serialize_entity({}, entity)
    assert converted == {"when": "2026-01-02T00:00:00.000000", "tags": ["a", ["b"]], "n": None, "1": 2}
    assert entity["tags"] == ("a", {"b"})
    assert serializer.JsonPayloadSerializer().serialize_context({"a": 1}) == {"a": 1}


def test_json_payload_converts_without_an_instance() -> None:
    assert serializer.JsonPayloadSerializer.serialize_entity({}, {"a": (1,)}) == {"a": [1]}


def test_json_payload_refuses_what_has_no_form() -> None:
    with pytest.raises(EncodeError, match=r"payload\.a\[1\]: a value of type complex cannot be written"):
        serializer.JsonPayloadSerializer().serialize_entity({}, {"a": [1, 1j]})


class Volume:
    def __init__(self, size: object) -> None:
        self.size = size


def test_json_payload_takes_a_programs_own_objects_apart() -> None:
    entity = {"volumes": [Volume(1), Volume({2})]}
    expected = {"volumes": [{"size": 1}, {"size": [2]}]}
    assert serializer.JsonPayloadSerializer.serialize_entity({}, entity) == expected
    loop = Volume(1)
    loop.size = loop
    with pytest.raises(EncodeError, match="nested beyond"):
        serializer.JsonPayloadSerializer.serialize_entity({}, loop)
    with pytest.raises(EncodeError, match=r"payload\.size: a value of type type cannot be written as JSON"):
        serializer.JsonPayloadSerializer.serialize_entity({}, Volume(Volume))
