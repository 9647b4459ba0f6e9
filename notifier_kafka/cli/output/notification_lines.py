"""Notifications as lines of output: selected by conditions, in a format."""

import csv
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from notifier_kafka.cli.output import text
from notifier_kafka.contract.driver import Delivery
from notifier_kafka.wire import codec

Fields = dict[str, Any]
Conditions = Sequence[tuple[str, re.Pattern[str]]]

COLUMNS = ("recorded_at", "priority", "publisher_id", "event_type", "topic", "partition", "offset", "payload")
# The columns of a table with their widths; the payload takes the rest of a terminal's line.
_COLUMN_WIDTHS = {"recorded_at": 24, "priority": 8, "publisher_id": 20, "event_type": 28, "payload": 0}


def decode_fields(delivery: Delivery) -> Fields:
    """Decode a notification, and add its position; ``ValueError`` or ``RecursionError`` if malformed."""
    return codec.decode(delivery.record)._asdict() | {
        "topic": delivery.partition.topic,
        "partition": delivery.partition.number,
        "offset": delivery.offset,
        "recorded_at": text.iso(delivery.timestamp),
    }


def matches_all(fields: Fields, conditions: Conditions) -> bool:
    """Tell whether every condition's field begins with a match of its pattern. A missing field never does."""
    return all(_matches(_lookup(fields, path), pattern) for path, pattern in conditions)


def _matches(value: Any, pattern: re.Pattern[str]) -> bool:
    return value is not None and pattern.match(_as_text(value)) is not None


def _lookup(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else text.json_line(value)


def _as_json(fields: Fields) -> str:
    return text.json_line(fields)


def _cells(fields: Fields) -> list[str]:
    return [text.visible(_as_text(fields[name])) for name in COLUMNS]


def _as_csv(fields: Fields) -> str:
    return csv_line(_cells(fields))


def csv_line(cells: Sequence[str]) -> str:
    """Format cells as a line of CSV, without a line end."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(map(text.csv_cell, cells))
    return line.getvalue()


def _as_values(fields: Fields) -> str:
    return " ".join(_cells(fields))


def _as_table_row(fields: Fields) -> str:
    return _table_row(dict(zip(COLUMNS, _cells(fields), strict=True)))


def _table_row(cells: dict[str, str]) -> str:
    line = " ".join(cells[name].ljust(width) for name, width in _COLUMN_WIDTHS.items()).rstrip()
    return line[: os.get_terminal_size().columns] if sys.stdout.isatty() else line


FORMATS: dict[str, Callable[[Fields], str]] = {
    "json": _as_json,
    "table": _as_table_row,
    "csv": _as_csv,
    "value": _as_values,
}


def header(output_format: str) -> str:
    """Return the line above the notifications in a format, or "" if it has none."""
    if output_format == "csv":
        return csv_line(COLUMNS)
    if output_format == "table":
        return _table_row({name: name for name in _COLUMN_WIDTHS})
    return ""
