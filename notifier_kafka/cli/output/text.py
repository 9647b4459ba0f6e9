"""Text for a terminal: what came over a bus must not be able to steer it."""

import datetime
import json
import os
import re
import sys
from typing import Any

# The last four are as wide as a Chinese character, and begin a formula where such are typed.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NO_FORMULA = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?)?")

RED, YELLOW = 31, 33


def visible(text: str) -> str:
    """Spell control characters, bidirectional overrides and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def csv_cell(value: Any) -> Any:
    """Keep a spreadsheet from taking text for a formula. Numbers, and a lone dash, stand as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NO_FORMULA.fullmatch(value):
        return value
    return f"'{value}"


def coloured(text: str, colour: int) -> str:
    """Colour a text for a terminal that stdout is; elsewhere, or where nobody wants it, it stays plain."""
    wanted = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return f"\x1b[{colour}m{text}\x1b[0m" if wanted and not os.environ.get("NO_COLOR") else text


def json_line(value: Any) -> str:
    """Spell ``value`` as one line of ASCII JSON without a raw control character."""
    line = json.dumps(value, ensure_ascii=True, default=str)
    # The one control character that JSON lets stand.
    return line.replace("\x7f", "\\u007f")


def iso(seconds: float) -> str:
    """Spell a time of the epoch in UTC; as ``@SECONDS`` one that no calendar has: a publisher may say any."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.3f}"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def note(text: str) -> None:
    """Tell the person at the terminal, beside the data."""
    print(f"notifier-kafka: {visible(text)}", file=sys.stderr, flush=True)  # noqa: T201
