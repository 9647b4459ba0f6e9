"""Packs the headers of a record into one value."""

import struct
from collections.abc import Iterator
from functools import lru_cache

from notifier_kafka.contract.driver import Headers

_LENGTH = struct.Struct("<I")

# The first byte of packed headers. Nearly all headers are text with the same few names, and to
# split those costs a fifth of what reading lengths costs.
_SPLIT, _LENGTHS = b"\0", b"\1"
_BETWEEN_NAMES = "\x1f"


def pack_headers(headers: Headers) -> bytes:
    """Pack headers into one value: names and contents separated by zero bytes, or with their lengths."""
    names, contents = zip(*headers)  # noqa: B905 - pairs; strict costs as much as the rest of the line
    packed = _join_names(names) + _SPLIT.join(contents)
    if packed.count(_SPLIT) == len(headers) + 1:
        return packed
    parts = [part for name, content in headers for part in (name.encode(), content)]
    return _LENGTHS + b"".join(_LENGTH.pack(len(part)) + part for part in parts)


@lru_cache(1024)
def _join_names(names: tuple[str, ...]) -> bytes:
    """Join names for the begin of packed headers; add a zero byte when they could not be split again."""
    joined = _BETWEEN_NAMES.join(names)
    ambiguous = joined.count(_BETWEEN_NAMES) != len(names) - 1
    return _SPLIT + joined.encode() + _SPLIT * (2 if ambiguous else 1)


def unpack_headers(packed: bytes) -> Headers:
    """Unpack the result of ``pack_headers``."""
    if packed[:1] == _SPLIT:
        parts = packed.split(_SPLIT)
        return tuple(zip(_split_names(parts[1]), parts[2:]))  # noqa: B905 - packed so; strict costs as much again
    parts = list(_by_length(packed))
    return tuple(zip(map(bytes.decode, parts[::2]), parts[1::2], strict=True))


@lru_cache(1024)
def _split_names(names: bytes) -> tuple[str, ...]:
    return tuple(names.decode().split(_BETWEEN_NAMES))


def _by_length(packed: bytes) -> Iterator[bytes]:
    at = 1
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        start = at + _LENGTH.size
        at = start + length
        yield packed[start:at]
