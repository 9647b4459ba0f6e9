"""Types of arguments: from text to a value, or one line that says what is wrong."""

import argparse
import datetime
import re

from notifier_kafka.driver import Start

STARTS: dict[str, Start] = {"beginning": "earliest", "end": "latest"}


def start(argument: str) -> Start:
    """Read ``beginning``, ``end`` or a time in ISO 8601, which is UTC unless it says otherwise."""
    if argument in STARTS:
        return STARTS[argument]
    try:
        moment = datetime.datetime.fromisoformat(argument)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{argument!r} is none of beginning, end or a time such as 2026-11-18T07:50:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def positive(argument: str) -> int:
    """Read a whole number above zero."""
    if not argument.isascii() or not argument.isdigit() or int(argument) == 0:
        raise argparse.ArgumentTypeError(f"{argument!r} is no number above zero")
    return int(argument)


def seconds(argument: str) -> float:
    """Read a span of time."""
    try:
        value = float(argument)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{argument!r} is no number of seconds")
    return value


def pattern(argument: str) -> re.Pattern[str]:
    """Read a regular expression."""
    try:
        return re.compile(argument)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{argument!r} is no regular expression: {error}") from None
