"""Bounds what kafka-python unpacks, and has it unpack what brokers store: they judge neither.

A compressed batch of kilobytes may open to gigabytes; the library opens it as a whole and has no
limit. The name of a header may be no UTF-8; the library then gives up the batch, again and again.
What somebody else in this process reads with it is left alone.
"""

import contextlib
import contextvars
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from kafka.record.default_records import DefaultRecordBatch

_LIMIT: contextvars.ContextVar[int] = contextvars.ContextVar("notifier-kafka-unpacked", default=0)
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_GZIP = zlib.MAX_WBITS | 16
# zlib copies what lies behind a member, which of many empty ones would be all the rest each time.
_SLICE = 16 * 1024


class Oversized(Exception):
    """A batch opens to more than may be. ``following`` is the offset behind it."""

    def __init__(self, size: int, limit: int, following: int) -> None:
        super().__init__(f"a compressed batch of {size} bytes opens to more than {limit} (fetch.max.bytes)")
        self.following = following


@contextlib.contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Let no batch that is opened meanwhile, in this thread, have more bytes than ``limit``.

    Names that are not UTF-8 are read as Java reads them, with a U+FFFD for what is none.
    """
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def _gzip(packed: bytes, most: int) -> bytes:
    opened = bytearray()
    member = zlib.decompressobj(_GZIP)
    for start in range(0, len(packed), _SLICE):
        rest = packed[start : start + _SLICE]
        while rest and len(opened) < most:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            opened += member.decompress(rest, most - len(opened))
            rest = member.unused_data
    if packed and not member.eof and len(opened) < most:
        raise EOFError("the batch ends within its gzip stream")
    return bytes(opened)


def _snappy(packed: bytes, most: int) -> bytes:
    import snappy

    blocks = [packed]
    if packed.startswith(_XERIAL):
        blocks = list(_xerial_blocks(packed))
    # A block says first what it opens to, and the library allocates that.
    if sum(map(_snappy_length, blocks)) >= most:
        return bytes(most)
    return b"".join(snappy.decompress(block) for block in blocks)


def _xerial_blocks(packed: bytes) -> Iterator[bytes]:
    start = _XERIAL_HEADER
    while start < len(packed):
        length = int.from_bytes(packed[start : start + 4], "big")
        yield packed[start + 4 : start + 4 + length]
        start += 4 + length


def _snappy_length(block: bytes) -> int:
    length = 0
    for place, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return length


def _lz4(packed: bytes, most: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    opened: bytes = frame.decompress(packed, most)
    if not frame.eof and len(opened) < most:
        raise EOFError("the batch ends within its lz4 frame")
    return opened


def _zstd(packed: bytes, most: int) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
        opened: bytes = reader.read(most)
    return opened


_CODECS: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}


class _Lenient(bytearray):
    """Bytes of which every part is text."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found if isinstance(found, int) else _Lenient(found)

    def decode(self, *_: Any) -> str:
        return super().decode("utf-8", "replace")


_strict = DefaultRecordBatch._read_msg  # noqa: SLF001 - the only place to have it go on
_unbounded = DefaultRecordBatch._maybe_uncompress  # noqa: SLF001 - the only place to stop it


def _maybe_uncompress(batch: Any) -> None:
    """Stands in for the library's own."""
    limit, unpack = _LIMIT.get(), _CODECS.get(batch.compression_type)
    if limit and unpack and not batch._decompressed:  # noqa: SLF001
        batch._assert_has_codec(batch.compression_type)  # noqa: SLF001
        packed = bytes(memoryview(batch._buffer)[batch._pos :])  # noqa: SLF001
        opened = unpack(packed, limit + 1)
        if len(opened) > limit:
            raise Oversized(len(packed), limit, batch.next_offset)
        batch._buffer, batch._pos, batch._decompressed = bytearray(opened), 0, True  # noqa: SLF001
    _unbounded(batch)


def _read_msg(batch: Any) -> Any:
    """Stands in for the library's own."""
    try:
        return _strict(batch)
    except UnicodeDecodeError:
        if not _LIMIT.get():
            raise
    # For all that follows: a copy for each such record would be quadratic.
    batch._buffer = _Lenient(batch._buffer)  # noqa: SLF001
    return _strict(batch)


DefaultRecordBatch._maybe_uncompress = _maybe_uncompress  # noqa: SLF001
DefaultRecordBatch._read_msg = _read_msg  # noqa: SLF001
