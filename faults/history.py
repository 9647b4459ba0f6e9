"""The journals that the checker reads: lines of JSON, each whole or not there."""

import json
import os
import time
from typing import Any

LONGEST = 1 << 20  # bytes; no line has as many


class Journal:
    """Appends lines to a file of its process's own, each with one write.

    What was written is in the kernel's hands, so that SIGKILL loses no finished line. The
    time is the machine's, the same for all processes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # An earlier life may have been killed within a write: its half line would spoil our first.
        start = max(0, os.fstat(self._file).st_size - LONGEST)
        os.ftruncate(self._file, start + os.pread(self._file, LONGEST, start).rfind(b"\n") + 1)

    def write(self, what: str, **fields: Any) -> None:
        self.write_all(what, [fields])

    def write_all(self, what: str, lines: list[dict[str, Any]]) -> None:
        now = time.monotonic_ns()
        text = "".join(f"{json.dumps({'what': what, 'at': now} | fields)}\n" for fields in lines)
        data = text.encode()
        # A short write would leave half a line in the middle of the file.
        assert os.write(self._file, data) == len(data)
