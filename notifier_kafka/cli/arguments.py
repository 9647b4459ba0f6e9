"""Argument types of commands: from text to a value, or to an error of one line."""

import argparse
import datetime
import re

from notifier_kafka.contract.driver import Start

START_WORDS: dict[str, Start] = {"beginning": "earliest", "end": "latest"}
POSITION_WORDS: dict[str, Start] = {"earliest": "earliest", "latest": "latest"}


def start(argument: str) -> Start | int:
    """Parse ``beginning``, ``end``, ``-N`` as an int, or a time (UTC without a time zone)."""
    if argument in START_WORDS:
        return START_WORDS[argument]
    if argument.startswith("-") and argument[1:].isascii() and argument[1:].isdigit() and int(argument):
        return int(argument)
    return _parse_time(argument, "beginning, end, -N")


def offset_or_time(argument: str) -> Start | int:
    """Parse ``earliest``, ``latest``, an offset as an int, or a time as a float."""
    if argument in POSITION_WORDS:
        return POSITION_WORDS[argument]
    if argument.isascii() and argument.isdigit():
        return int(argument)
    return _parse_time(argument, "earliest, latest, an offset")


def moment(argument: str) -> float:
    """Parse a time in ISO 8601 (UTC without a time zone)."""
    return _parse_time(argument, "")


def _parse_time(argument: str, others: str) -> float:
    try:
        time = datetime.datetime.fromisoformat(argument)
        time = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
        return time.astimezone(datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        expected = f"none of {others} or" if others else "not"
        raise argparse.ArgumentTypeError(
            f"{argument!r} is {expected} a time such as 2026-11-18T07:50:00Z"
        ) from None


def setting(argument: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = argument.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{argument!r} is not NAME=VALUE")
    return name, value


def condition(argument: str) -> tuple[str, re.Pattern[str]]:
    """Parse ``FIELD=RE``."""
    name, equals, expression = argument.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{argument!r} is not FIELD=RE")
    return name, pattern(expression)


def positive(argument: str) -> int:
    """Parse a whole number above zero."""
    if not argument.isascii() or not argument.isdigit() or int(argument) == 0:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a whole number above zero")
    return int(argument)


def seconds(argument: str) -> float:
    """Parse a number of seconds."""
    try:
        value = float(argument)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{argument!r} is not a number of seconds")
    return value


def pattern(argument: str) -> re.Pattern[str]:
    """Parse a regular expression."""
    try:
        return re.compile(argument)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a regular expression: {error}") from None


def page_file(parser: argparse.ArgumentParser) -> None:
    """Add the option for the file of the report's page."""
    parser.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        default="report.html",
        help="Where to write the HTML page. Default: %(default)s.",
    )
