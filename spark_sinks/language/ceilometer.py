"""Reads Ceilometer's ``meters.yaml``. Definitions that have no equivalent here are refused by name."""

import re

from spark_sinks.language import field_paths, yaml_lines
from spark_sinks.language.field_paths import FieldPath
from spark_sinks.language.metrics import Constant, Group, Metric, Selection, Value, Window
from spark_sinks.language.yaml_lines import YamlValue

KINDS = {"delta": "sum", "gauge": "last", "cumulative": "last"}

_PATTERN = re.compile(r"[\w.:*-]+")
_KEYS = ("name", "event_type", "type", "unit", "volume")
_GROUP_KEYS = ("resource_id", "project_id", "user_id")
_UNSUPPORTED = {
    "lookup": "it makes several meters from one definition; write a definition for each",
    "multi": "it makes several meters from one definition; write a definition for each",
    "timestamp": "the notification's own time is used",
    "user_metadata": "list its members under metadata",
}


def meter(item: YamlValue, window: int) -> Metric:
    """Translate the definition of a meter into a metric."""
    known = (*_KEYS, *_GROUP_KEYS, "metadata")
    members = item.mapping("a meter", (*known, *_UNSUPPORTED))
    for name, reason in _UNSUPPORTED.items():
        if name in members:
            members[name].refuse(f"Ceilometer's {name!r} is not supported: {reason}")
    for name in _KEYS:
        if name not in members:
            item.refuse(f"a meter needs {name}")
    if members["name"].text("name").startswith("$"):
        members["name"].refuse("a path as a name is not supported; write a meter for each name")
    kind = members["type"].text("type")
    if kind not in KINDS:
        members["type"].refuse(f"unknown type {kind!r}; {yaml_lines.suggest(kind, KINDS)}")
    return Metric(
        members["name"].name(),
        KINDS[kind],
        members["unit"].text("unit"),
        Selection(event_types=tuple(map(_event_type, members["event_type"].items("event_type")))),
        _volume(members["volume"]),
        _group(members),
        (Window.tumbling(window),),
    )


def _event_type(item: YamlValue) -> str:
    """Translate an event type: a regular expression in Ceilometer, a pattern like ours in old files."""
    text = item.text("event_type")
    # "\\." is a dot, and ".*" after it or at the beginning means anything.
    pattern = re.sub(r"(^|\\\.)\.\*", r"\1*", text).replace("\\.", ".")
    if not _PATTERN.fullmatch(pattern):
        item.refuse(
            f"event_type {text!r}: of regular expressions only names with .* are supported; "
            "list the event types instead, such as [a.create.*, a.delete.*]"
        )
    return pattern


def _volume(item: YamlValue) -> Value:
    return _path(item, "volume") if isinstance(item.value, str | dict) else Constant(item.number("volume"))


def _group(members: dict[str, YamlValue]) -> Group:
    found = [(name, _path(members[name], name)) for name in _GROUP_KEYS if name in members]
    if "metadata" in members:
        metadata = members["metadata"].mapping("metadata")
        found += [(f"metadata.{name}", _path(item, f"metadata {name}")) for name, item in metadata.items()]
    return tuple(found)


def _path(item: YamlValue, what: str) -> FieldPath:
    if isinstance(item.value, dict):
        item.refuse(f"{what}: Ceilometer's 'plugin' and 'fields' are not supported; give one path")
    text = item.text(what)
    if not text.startswith("$"):
        item.refuse(f"{what} {text!r} is not a path; arithmetic is not supported")
    try:
        return field_paths.parse(text)
    except ValueError as error:
        item.refuse(str(error))
