"""The known name that a misspelt one is nearest to."""

import difflib
from collections.abc import Iterable

# The default of difflib.
DEFAULT_SIMILARITY = 0.6


def nearest(name: str, known: Iterable[str], similarity: float = DEFAULT_SIMILARITY) -> str | None:
    """Return the known name that is most like ``name``, or None if none is similar enough."""
    found = difflib.get_close_matches(name, list(known), 1, similarity)
    return found[0] if found else None
