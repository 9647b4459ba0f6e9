"""What is said of a misspelt name: the known name that is most like it."""

import difflib
from collections.abc import Collection


def hint(name: object, known: Collection[str], otherwise: str = "") -> str:
    """Return "did you mean X?", or ``otherwise`` when no known name is like ``name``."""
    near = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean {near[0]}?" if near else otherwise


def hint_and_choices(name: object, known: Collection[str], introduction: str = "known are") -> str:
    """Return the hint, if there is one, and then all known names."""
    choices = f"{introduction} {', '.join(known) or 'none'}"
    return f"{hint(name, known)} {choices}".lstrip()
