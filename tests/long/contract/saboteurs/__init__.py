"""Saboteurs: each wraps the SQLite driver and breaks one clause, as a real bug would.

``clause`` is the clause that it breaks; ``caught_by`` names the tests of that clause that must fail.
A saboteur is loaded by its URL scheme, ``saboteur-NAME``, like a driver of another distribution.
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
    """Return the URL scheme of a saboteur."""
    return f"saboteur-{saboteur.__name__.lower()}"
