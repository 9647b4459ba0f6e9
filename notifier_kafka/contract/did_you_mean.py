"""What is said of a misspelt name: the known name that is most like it."""

import difflib
from collections.abc import Collection, Iterable

# difflib's own: how alike two names must be, from 0 to 1.
DEFAULT_SIMILARITY = 0.6


def nearest(name: str, known: Iterable[str], similarity: float = DEFAULT_SIMILARITY) -> str | None:
    """Return the known name that is most like ``name``, or None if none is similar enough."""
    found = difflib.get_close_matches(name, list(known), 1, similarity)
    return found[0] if found else None


def hint(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean X?", or ``otherwise`` when no known name is like ``name``."""
    near = nearest(str(name), known)
    return f"did you mean {near}?" if near else otherwise


def hint_and_choices(name: object, known: Collection[str], introduction: str = "known are") -> str:
    """Return the hint, if there is one, and then all known names."""
    choices = f"{introduction} {', '.join(known) or 'none'}"
    return f"{hint(name, known)} {choices}".lstrip()
