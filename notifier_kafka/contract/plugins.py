"""Loads what other distributions may bring: drivers, channels, key functions, clients."""

import difflib
from importlib import metadata
from typing import Any

from notifier_kafka.errors import DriverLoadFailure, DriverNotFound


def load(namespace: str, name: str) -> Any:
    """Return the object behind an entry point; it is not called.

    Raises ``DriverNotFound`` with what is installed, or ``DriverLoadFailure`` with the
    reason and what to install: stevedore by itself would skip it or let a bare
    ImportError through.
    """
    # Here, because it is a fifth of the time that importing this package takes.
    import stevedore
    from stevedore.exception import NoMatches

    try:
        manager: stevedore.DriverManager[Any] = stevedore.DriverManager(
            namespace, name, on_load_failure_callback=_refuse, on_missing_entrypoints_callback=None
        )
    except NoMatches:
        known = names(namespace)
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise DriverNotFound(name, f"not found: {hint}installed are {', '.join(known) or 'none'}") from None
    return manager.driver


def names(namespace: str) -> list[str]:
    """List what is installed in a namespace, without loading it."""
    return sorted({entry.name for entry in metadata.entry_points(group=namespace)})


def _refuse(_manager: object, entry: metadata.EntryPoint, error: BaseException) -> None:
    raise DriverLoadFailure(entry.name, describe_failure(entry, error)) from error


def describe_failure(entry: metadata.EntryPoint, error: BaseException) -> str:
    """Say in one line why an entry point does not load and what to do about it."""
    owner = _owner(entry)
    text = f"{entry.value.split(' ')[0]} of {owner} does not load: {error}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        # An entry point may name the extra that brings what it needs: "name = module:object [extra]".
        what = f"{owner}[{','.join(entry.extras)}]" if entry.extras else error.name.partition(".")[0]
        return f"{text}; install it with: pip install '{what}'"
    return f"{text}; reinstall or upgrade {owner}"


def _owner(entry: metadata.EntryPoint) -> str:
    """Name the distribution; stevedore keeps entry points without theirs in a cache."""
    same = metadata.entry_points(group=entry.group, name=entry.name)
    return next((each.dist.name for each in same if each.dist), "its distribution")
