"""The histories that the checker reads: one JSON object a line."""

import json
import os
import time
from typing import Any

MAX_LINE_BYTES = 1 << 20


class History:
    """Appends events to the file of one process, each with one write.

    The kernel holds what was written, so SIGKILL loses no finished line. The time of an event is
    the machine's monotonic clock, the same for all processes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # An earlier process may have been killed within a write: cut its half line off.
        start = max(0, os.fstat(self._file).st_size - MAX_LINE_BYTES)
        os.ftruncate(self._file, start + os.pread(self._file, MAX_LINE_BYTES, start).rfind(b"\n") + 1)

    def write(self, event_type: str, **fields: Any) -> None:
        self.write_all(event_type, [fields])

    def write_all(self, event_type: str, lines: list[dict[str, Any]]) -> None:
        now = time.monotonic_ns()
        text = "".join(f"{json.dumps({'type': event_type, 'at': now} | fields)}\n" for fields in lines)
        data = text.encode()
        # A short write would leave half a line in the file.
        assert os.write(self._file, data) == len(data)
