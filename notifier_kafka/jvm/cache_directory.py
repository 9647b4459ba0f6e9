"""Where this package keeps what can be made or fetched again."""

import os
from pathlib import Path


def directory(kind: str) -> Path:
    """Say where in the user's cache things of a kind are, or will be."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "notifier-kafka", kind)
