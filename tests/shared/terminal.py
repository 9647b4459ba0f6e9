"""What programs write to a terminal of the test's."""

import contextlib
import os
from collections.abc import Iterator


def shown(terminal: int) -> Iterator[bytes]:
    """Yield it as it comes, in parts that may end anywhere, until the last writer has closed its side."""
    # Linux reports the end as an error.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            yield part
