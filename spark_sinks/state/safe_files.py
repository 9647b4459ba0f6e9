"""Files that are made where others may write too, by names that anybody can foresee."""

import contextlib
import os


def open_new(path: str, flags: int) -> int:
    """Open a file that was not there, as an ``opener`` of ``open``.

    One that a process of ours left goes first. What somebody planted in its place is not
    followed to where it leads: that would be written over with the rights of this process.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
