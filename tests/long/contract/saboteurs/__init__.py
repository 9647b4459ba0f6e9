"""Drivers that each break one clause, as a real bug would, around the SQLite driver.

``clause`` is what they break; ``caught_by`` names tests of that clause that must be red.
They are found by URL scheme, ``saboteur-NAME``, like any driver of another distribution.
"""

from tests.long.contract.saboteurs import base, bounds, consuming, publishing, transactions
from tests.long.contract.saboteurs.base import Honest, Saboteur

__all__ = ["ALL", "Honest", "Saboteur", "scheme"]

ALL: tuple[type[Saboteur], ...] = tuple(
    value
    for module in (base, publishing, consuming, bounds, transactions)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Saboteur) and value.__module__ == module.__name__
    if "clause" in vars(value)
)


def scheme(saboteur: type[Saboteur]) -> str:
    """Spell the URL scheme that a saboteur is found by."""
    return f"saboteur-{saboteur.__name__.lower()}"
