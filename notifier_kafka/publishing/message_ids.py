"""What makes one notification this one: its id and its time.

Both are needed for every notification, so both are made cheaply.
"""

import os
import time

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_LAST = [f"{number:02x}" for number in range(256)]
_ids: list[str] = []
# A child would go on with the ids that its parent has in hand.
os.register_at_fork(after_in_child=_ids.clear)


def new_message_id() -> str:
    """Return a version-4 UUID in text, never the same one twice. Safe in threads and after ``fork``."""
    while True:
        try:
            # One atomic step, which needs no lock.
            return _ids.pop()
        except IndexError:
            _ids.extend(_draw())


def _draw() -> list[str]:
    """Draw 256 ids that differ in their last two digits; the other 114 bits are random.

    Asking the system for each id would cost more than all the rest of a notification.
    """
    digits = os.urandom(15).hex()
    stem = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
    return [stem + last for last in _LAST]


_SECOND = 1_000_000_000
_second: tuple[int, str] = (0, "")


def timestamp_now() -> str:
    """Return the time in naive UTC, ``YYYY-MM-DD HH:MM:SS.ffffff``; no fraction when it is zero."""
    global _second  # noqa: PLW0603 - replaced as a whole, so that threads see a matching pair
    now = time.time_ns()
    begin, text = _second
    if not 0 <= now - begin < _SECOND:
        begin = now - now % _SECOND
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begin // _SECOND))
        _second = (begin, text)
    # The digits behind a one: half the time of a format with leading zeros.
    fraction = str((now - begin) // 1000 + 1_000_000)
    return f"{text}.{fraction[1:]}" if fraction != "1000000" else text
