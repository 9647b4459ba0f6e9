"""Cells of a table that differ for a person and for a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cliff import columns

from notifier_kafka.cli.output import text

if TYPE_CHECKING:
    Cell = columns.FormattableColumn[Any]
else:
    # Only newer versions of cliff make it generic at runtime.
    Cell = columns.FormattableColumn


class Absent(Cell):
    """No value: a dash for a person, null in JSON."""

    def human_readable(self) -> str:
        return "-"


ABSENT = Absent(None)


class Pairs(Cell):
    """Names and values, one pair a line."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        super().__init__({text.visible(name): text.visible(value) for name, value in pairs.items()})

    def human_readable(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in self._value.items())


class Table(Cell):
    """Rows, one a line: a number follows its name, a text stands alone."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        super().__init__([dict(row) for row in rows])

    def human_readable(self) -> str:
        return "\n".join("; ".join(_cell_text(*pair) for pair in row.items()) for row in self._value)


def _cell_text(name: str, value: object) -> str:
    return value if isinstance(value, str) else f"{name} {value}"
