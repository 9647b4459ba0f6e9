"""The id and the time of a notification.

Both are made for every notification, so they must be cheap.
"""

import os
import time

_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_LAST = [f"{number:02x}" for number in range(256)]
_ids: list[str] = []
# A child process would otherwise use the same ids as its parent.
os.register_at_fork(after_in_child=_ids.clear)


def new_message_id() -> str:
    """Return a new version-4 UUID as text. Safe with threads and after ``fork``."""
    while True:
        try:
            # Atomic, so it needs no lock.
            return _ids.pop()
        except IndexError:
            _ids.extend(_draw_ids())


def _draw_ids() -> list[str]:
    """Return 256 ids that differ in their last two digits; the other 114 bits are random.

    Asking the system for each id would take longer than all other work for a notification.
    """
    digits = os.urandom(15).hex()
    stem = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
    return [stem + last for last in _LAST]


_SECOND_NANOSECONDS = 1_000_000_000
# The beginning of the current second in nanoseconds, and its text.
_second: tuple[int, str] = (0, "")


def timestamp_now() -> str:
    """Return the time in naive UTC as ``YYYY-MM-DD HH:MM:SS.ffffff``, without the fraction if it is zero."""
    global _second  # noqa: PLW0603 - replaced as a whole, so that threads see a consistent pair
    now = time.time_ns()
    begin, text = _second
    if not 0 <= now - begin < _SECOND_NANOSECONDS:
        begin = now - now % _SECOND_NANOSECONDS
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begin // _SECOND_NANOSECONDS))
        _second = (begin, text)
    # The digits after a leading 1: half the time of formatting with leading zeros.
    fraction = str((now - begin) // 1000 + 1_000_000)
    return f"{text}.{fraction[1:]}" if fraction != "1000000" else text
