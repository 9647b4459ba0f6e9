"""Arguments of commands: from text to a value, or one line that says what is wrong."""

import argparse
import datetime
import re

from notifier_kafka.contract.driver import Start

STARTS: dict[str, Start] = {"beginning": "earliest", "end": "latest"}
PLACES: dict[str, Start] = {"earliest": "earliest", "latest": "latest"}


def start(argument: str) -> Start | int:
    """Read ``beginning``, ``end``, ``-N`` as an int, or a time, which is UTC unless it says otherwise."""
    if argument in STARTS:
        return STARTS[argument]
    if argument.startswith("-") and argument[1:].isascii() and argument[1:].isdigit() and int(argument):
        return int(argument)
    return _moment(argument, "beginning, end, -N")


def place(argument: str) -> Start | int:
    """Read ``earliest``, ``latest``, an offset, which is an int, or a time, which is a float."""
    if argument in PLACES:
        return PLACES[argument]
    if argument.isascii() and argument.isdigit():
        return int(argument)
    return _moment(argument, "earliest, latest, an offset")


def moment(argument: str) -> float:
    """Read a time in ISO 8601, which is UTC unless it says otherwise."""
    return _moment(argument, "")


def _moment(argument: str, others: str) -> float:
    try:
        moment = datetime.datetime.fromisoformat(argument)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return moment.astimezone(datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        wanted = f"none of {others} or" if others else "not"
        raise argparse.ArgumentTypeError(
            f"{argument!r} is {wanted} a time such as 2026-11-18T07:50:00Z"
        ) from None


def setting(argument: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``."""
    name, equals, value = argument.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{argument!r} is not NAME=VALUE")
    return name, value


def condition(argument: str) -> tuple[str, re.Pattern[str]]:
    """Read ``FIELD=RE``."""
    name, equals, expression = argument.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{argument!r} is not FIELD=RE")
    return name, pattern(expression)


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


def page_file(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the page of a report goes."""
    parser.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        default="report.html",
        help="The page. Default: %(default)s.",
    )
