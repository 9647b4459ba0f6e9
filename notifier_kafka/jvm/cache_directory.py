"""The user's cache directory of this package, for files that can be fetched or made again."""

import os
from pathlib import Path


def directory(kind: str) -> Path:
    """Return the directory for one kind of cached files. It may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "notifier-kafka", kind)
