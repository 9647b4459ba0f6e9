"""Values that are spelled one way for a person and another for a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cliff import columns

from notifier_kafka.cli.output import text

if TYPE_CHECKING:
    Cell = columns.FormattableColumn[Any]
else:
    # cliff made it generic late.
    Cell = columns.FormattableColumn


class Absent(Cell):
    """Nothing: a dash for a person, null in JSON."""

    def human_readable(self) -> str:
        return "-"


ABSENT = Absent(None)


class Pairs(Cell):
    """Names with values, a line for each."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        super().__init__({text.visible(name): text.visible(value) for name, value in pairs.items()})

    def human_readable(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in self._value.items())


class Table(Cell):
    """Rows, a line for each: numbers with their names, words as they are."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        super().__init__([dict(row) for row in rows])

    def human_readable(self) -> str:
        return "\n".join("; ".join(_named(*pair) for pair in row.items()) for row in self._value)


def _named(name: str, value: object) -> str:
    return value if isinstance(value, str) else f"{name} {value}"
