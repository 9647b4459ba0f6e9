"""Creates files safely where others may write too and can guess the names."""

import contextlib
import os


def open_new(path: str, flags: int) -> int:
    """Create a file, as an ``opener`` of ``open``.

    A file that an earlier process left is removed first. A symbolic link is never followed:
    somebody could make this process overwrite any file.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
