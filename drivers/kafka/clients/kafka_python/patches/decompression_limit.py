"""A compressed batch opens to a limited number of bytes; kafka-python opens it as a whole, without a limit.

A batch of kilobytes may open to gigabytes, and brokers do not check that. The limit holds for our own
consumers only: the classes below are set on the fetcher of one consumer, and other users of
kafka-python in this process are not affected.

Waits for: nothing, this is not reported upstream yet.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords

from .header_names import LenientBatch

_FORMAT_WITH_HEADERS = 2  # the "magic" of batches since Kafka 0.11
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_GZIP = zlib.MAX_WBITS | 16
# zlib copies what lies behind a member, which of many empty ones would be all the rest each time.
_GZIP_SLICE_BYTES = 16 * 1024


class BatchTooLarge(Exception):
    """A batch opens to more than the limit. ``following`` is the offset behind it."""

    def __init__(self, size: int, limit: int, following: int) -> None:
        super().__init__(f"a compressed batch of {size} bytes opens to more than {limit} (fetch.max.bytes)")
        self.following = following


def set_limit(consumer: Any, limit: int) -> None:
    """Have a consumer open no batch to more bytes than ``limit``."""
    fetcher = consumer._fetcher
    original = fetcher.PartitionRecords

    class LimitedPartitionRecords(original):  # type: ignore[misc, valid-type]
        """Those of this consumer; the fetcher makes one of each answer, by this name."""

        def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Any:
            return super()._unpack_records(tp, LimitedRecords(records._buffer, limit), *deserializers)

    fetcher.PartitionRecords = LimitedPartitionRecords


class LimitedRecords(MemoryRecords):  # type: ignore[misc]
    """Batches of a partition, each with the limit."""

    def __init__(self, data: Any, limit: int) -> None:
        super().__init__(data)
        self._limit = limit

    def next_batch(self) -> Any:
        packed = self._next_slice
        if packed is None or len(packed) < self.MIN_SLICE or packed[self.MAGIC_OFFSET] < _FORMAT_WITH_HEADERS:
            return super().next_batch()
        self._cache_next()
        return LimitedBatch(packed, self._limit)


class LimitedBatch(LenientBatch):
    """One batch, opened by the library's own code unless it is compressed."""

    _decompressed: bool
    _pos: int

    def __init__(self, packed: Any, limit: int) -> None:
        super().__init__(packed)
        self._limit = limit

    def _maybe_uncompress(self) -> None:
        unpack = _CODECS.get(self.compression_type)
        if unpack and not self._decompressed:
            self._assert_has_codec(self.compression_type)
            packed = bytes(memoryview(self._buffer)[self._pos :])
            opened = unpack(packed, self._limit + 1)
            if len(opened) > self._limit:
                raise BatchTooLarge(len(packed), self._limit, self.next_offset)
            self._buffer, self._pos, self._decompressed = bytearray(opened), 0, True
        super()._maybe_uncompress()


def _gzip(packed: bytes, limit: int) -> bytes:
    opened = bytearray()
    member = zlib.decompressobj(_GZIP)
    for start in range(0, len(packed), _GZIP_SLICE_BYTES):
        rest = packed[start : start + _GZIP_SLICE_BYTES]
        while rest and len(opened) < limit:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            opened += member.decompress(rest, limit - len(opened))
            rest = member.unused_data
    if packed and not member.eof and len(opened) < limit:
        raise EOFError("the batch ends within its gzip stream")
    return bytes(opened)


def _snappy(packed: bytes, limit: int) -> bytes:
    import snappy

    blocks = [packed]
    if packed.startswith(_XERIAL):
        blocks = list(_xerial_blocks(packed))
    # A block says first what it opens to, and the library allocates that.
    if sum(map(_snappy_length, blocks)) >= limit:
        return bytes(limit)
    return b"".join(snappy.decompress(block) for block in blocks)


def _xerial_blocks(packed: bytes) -> Iterator[bytes]:
    start = _XERIAL_HEADER_BYTES
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


def _lz4(packed: bytes, limit: int) -> bytes:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    opened: bytes = frame.decompress(packed, limit)
    if not frame.eof and len(opened) < limit:
        raise EOFError("the batch ends within its lz4 frame")
    return opened


def _zstd(packed: bytes, limit: int) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
        opened: bytes = reader.read(limit)
    return opened


_CODECS: dict[int, Callable[[bytes, int], bytes]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
