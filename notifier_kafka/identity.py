"""What makes one notification this one: its id and its time.

Both are needed for every notification, so both are made cheaply.
"""

import os
import time

_BLOCK = 64
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
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
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
        f"-{_VARIANT[digits[at + 16]]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits), 32)
    ]


_second: tuple[str, str] = ("", "")


def timestamp_now() -> str:
    """Return the time in naive UTC, ``YYYY-MM-DD HH:MM:SS.ffffff``; no fraction when it is zero."""
    global _second  # noqa: PLW0603 - replaced as a whole, so that threads see a matching pair
    digits = str(time.time_ns() // 1000)
    second, fraction = digits[:-6], digits[-6:]
    known, text = _second
    if known != second:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(int(second)))
        _second = (second, text)
    return f"{text}.{fraction}" if fraction != "000000" else text
