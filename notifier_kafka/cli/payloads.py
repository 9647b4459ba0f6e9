"""Payloads of notifications from the command line, a file or a pipe."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Never, cast

from notifier_kafka.cli.exits import UsageError

BLOCK_BYTES = 512 * 1024
STDIN = "-"
FILE_PREFIX = "@"


def read_one(argument: str, *, as_text: bool) -> Any:
    """Return the payload in an argument, or in the file or pipe that the argument names."""
    if not _is_source(argument):
        return parse(argument, "PAYLOAD", as_text=as_text)
    with _open(argument) as (stream, name):
        return parse(_decode(stream.read(), name), name, as_text=as_text)


def read_lines(argument: str, *, as_text: bool) -> Iterator[list[Any]]:
    """Yield the payloads of a file or pipe, one a line, as they become readable.

    Each list is the result of one read, so that a line of a slow pipe is sent at once and a
    long file in large batches. Empty lines are skipped.
    """
    if not _is_source(argument):
        raise UsageError(f"--lines reads from {STDIN} or {FILE_PREFIX}FILE, not from an argument")
    with _open(argument) as (stream, name):
        number = 0
        for lines in _blocks(stream):
            payloads = []
            for line in lines:
                number += 1
                if line.strip():
                    where = f"{name}, line {number}"
                    payloads.append(parse(_decode(line, where), where, as_text=as_text))
            yield payloads


def parse(payload: str, where: str, *, as_text: bool) -> Any:
    """Return the JSON value in ``payload``, or the text itself."""
    if as_text:
        return payload
    try:
        return json.loads(payload, parse_constant=_refuse_constant)
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}; --text sends it as a string") from None


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _is_source(argument: str) -> bool:
    return argument == STDIN or argument.startswith(FILE_PREFIX)


@contextlib.contextmanager
def _open(argument: str) -> Iterator[tuple[io.BufferedReader, str]]:
    if argument == STDIN:
        yield cast(io.BufferedReader, sys.stdin.buffer), "standard input"
        return
    path = argument.removeprefix(FILE_PREFIX)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below; the except is for opening only
    except OSError as error:
        raise UsageError(f"cannot read {path!r}: {os.strerror(error.errno or 0)}") from None
    with stream:
        yield stream, path


def _blocks(stream: io.BufferedReader) -> Iterator[list[bytes]]:
    rest = b""
    while block := stream.read1(BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _decode(line: bytes, where: str) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8: {error.reason} at byte {error.start}") from None
