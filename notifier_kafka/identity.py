"""What makes one notification this one: its id and its time.

Both are needed for every notification, so both are made cheaply.
"""

import os
import time

_BLOCK = 64
_ids: list[str] = []
# A child would go on with the ids that its parent has in hand.
os.register_at_fork(after_in_child=_ids.clear)


def new_message_id() -> str:
    """Return a random version-4 UUID in text. Safe in threads and after ``fork``."""
    while True:
        try:
            # One atomic step, which needs no lock.
            return _ids.pop()
        except IndexError:
            _ids.extend(_draw())


def _draw() -> list[str]:
    """Draw a block: asking the system for each id costs more than all the rest of it."""
    digits = os.urandom(16 * _BLOCK).hex()
    return [_uuid4(digits[start : start + 32]) for start in range(0, len(digits), 32)]


def _uuid4(digits: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


_second: tuple[int, str] = (-1, "")


def timestamp_now() -> str:
    """Return the time in naive UTC, ``YYYY-MM-DD HH:MM:SS.ffffff``; no fraction when it is zero."""
    global _second  # noqa: PLW0603 - replaced as a whole, so that threads see a matching pair
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    known, text = _second
    if known != second:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
        _second = (second, text)
    microseconds = nanoseconds // 1000
    return f"{text}.{microseconds:06d}" if microseconds else text
