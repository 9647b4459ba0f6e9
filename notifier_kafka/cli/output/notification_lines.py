"""Notifications as lines: which are shown, and how."""

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

Members = dict[str, Any]
Conditions = Sequence[tuple[str, re.Pattern[str]]]

COLUMNS = ("recorded_at", "priority", "publisher_id", "event_type", "topic", "partition", "offset", "payload")
# The columns of a table with their widths; the payload takes the rest of a terminal's line.
_TABLE = {"recorded_at": 24, "priority": 8, "publisher_id": 20, "event_type": 28, "payload": 0}


def members(delivery: Delivery) -> Members:
    """Take a notification apart. Raises ``ValueError`` or ``RecursionError`` for what is none."""
    return codec.decode(delivery.record)._asdict() | {
        "topic": delivery.partition.topic,
        "partition": delivery.partition.number,
        "offset": delivery.offset,
        "recorded_at": text.iso(delivery.timestamp),
    }


def fits(found: Members, conditions: Conditions) -> bool:
    """Say whether each field named begins with what its pattern matches. One that is not there does not."""
    return all(_matches(_field(found, name), pattern) for name, pattern in conditions)


def _matches(value: Any, pattern: re.Pattern[str]) -> bool:
    return value is not None and pattern.match(_spelled(value)) is not None


def _field(found: Any, name: str) -> Any:
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else text.json_line(value)


def _as_json(found: Members) -> str:
    return text.json_line(found)


def _cells(found: Members) -> list[str]:
    return [text.visible(_spelled(found[name])) for name in COLUMNS]


def _as_csv(found: Members) -> str:
    return csv_line(_cells(found))


def csv_line(cells: Sequence[str]) -> str:
    """Spell cells as a line of CSV, without its end."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(map(text.csv_cell, cells))
    return line.getvalue()


def _as_values(found: Members) -> str:
    return " ".join(_cells(found))


def _as_row(found: Members) -> str:
    row = dict(zip(COLUMNS, _cells(found), strict=True))
    return _fitted(" ".join(row[name].ljust(width) for name, width in _TABLE.items()).rstrip())


def _fitted(line: str) -> str:
    return line[: os.get_terminal_size().columns] if sys.stdout.isatty() else line


FORMATS: dict[str, Callable[[Members], str]] = {
    "json": _as_json,
    "table": _as_row,
    "csv": _as_csv,
    "value": _as_values,
}


def header(form: str) -> str:
    """Return what stands above the lines of a format."""
    if form == "csv":
        return csv_line(COLUMNS)
    if form == "table":
        return _fitted(" ".join(name.ljust(width) for name, width in _TABLE.items()).rstrip())
    return ""
