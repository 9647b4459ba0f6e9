"""Text for a terminal. Data from the log must not be able to control the terminal."""

import datetime
import json
import os
import re
import sys
from typing import Any

# The last four are the full-width forms of the first, which some spreadsheets accept as well.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER_OR_SIGN = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?)?")

RED, YELLOW = 31, 33


def visible(text: str) -> str:
    """Replace control characters, bidirectional overrides and the like with escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def csv_cell(value: Any) -> Any:
    """Quote text that a spreadsheet would run as a formula. Numbers and a lone sign stay as they are."""
    if (
        not isinstance(value, str)
        or not value.startswith(_FORMULA_STARTS)
        or _NUMBER_OR_SIGN.fullmatch(value)
    ):
        return value
    return f"'{value}"


def coloured(text: str, colour: int) -> str:
    """Colour a text if stdout is a terminal that shows colours and NO_COLOR is not set."""
    has_colours = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours and not os.environ.get("NO_COLOR") else text


def json_line(value: Any) -> str:
    """Format ``value`` as one line of ASCII JSON without a raw control character."""
    line = json.dumps(value, ensure_ascii=True, default=str)
    # The only control character that JSON does not escape.
    return line.replace("\x7f", "\\u007f")


def iso(seconds: float) -> str:
    """Format a time of the epoch in UTC, or as ``@SECONDS`` if it is outside the calendar."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.3f}"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def note(text: str) -> None:
    """Print a line for the person at the terminal on stderr, apart from the data."""
    print(f"notifier-kafka: {visible(text)}", file=sys.stderr, flush=True)  # noqa: T201
