"""The journals that the checker reads: lines of JSON, each whole or not there."""

import json
import os
import time
from typing import Any


class Journal:
    """Appends lines to a file of its process's own, each with one write.

    What was written is in the kernel's hands, so that SIGKILL loses no finished line. The
    time is the machine's, the same for all processes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, **fields: Any) -> None:
        self.write_all(what, [fields])

    def write_all(self, what: str, lines: list[dict[str, Any]]) -> None:
        now = time.monotonic_ns()
        text = "".join(f"{json.dumps({'what': what, 'at': now} | fields)}\n" for fields in lines)
        data = text.encode()
        # A short write would leave half a line in the middle of the file.
        assert os.write(self._file, data) == len(data)
