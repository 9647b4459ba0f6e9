"""A record whose header has a name that is not UTF-8 is read; kafka-python would fail on its batch for ever.

Brokers do not check these names. Java reads them with a U+FFFD for what is not UTF-8, and so do we.

Waits for: nothing, this is not reported upstream yet.
"""

from typing import Any

from kafka.record.default_records import DefaultRecordBatch


class LenientBatch(DefaultRecordBatch):  # type: ignore[misc]
    """A batch that reads any name of a header."""

    _buffer: Any

    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            # For all that follows: a copy for each such record would be quadratic.
            self._buffer = _LenientBytes(self._buffer)
        return super()._read_msg()


class _LenientBytes(bytearray):
    """Bytes that can be decoded whatever they are."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found if isinstance(found, int) else _LenientBytes(found)

    def decode(self, *_: Any) -> str:
        return super().decode("utf-8", "replace")
