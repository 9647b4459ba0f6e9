"""Loads plugins, which other distributions may bring too: drivers, channels, key functions, clients."""

from importlib import metadata
from typing import Any

from notifier_kafka.contract import did_you_mean
from notifier_kafka.errors import DriverLoadFailure, DriverNotFound, MessagingException


def load(namespace: str, name: str) -> Any:
    """Return the object behind an entry point; it is not called.

    Raises ``DriverNotFound`` with the names that are installed, or ``DriverLoadFailure``
    with the reason and what to install. stevedore by itself would skip the plugin or raise
    a bare ImportError.
    """
    # Imported here because it takes a fifth of the time that importing this package takes.
    import stevedore

    def refuse_missing(_names: object) -> None:
        choices = did_you_mean.hint_and_choices(name, names(namespace), "installed are")
        raise DriverNotFound(name, f"not found: {choices}")

    # Not a DriverManager, which logs a missing name before it raises.
    manager: stevedore.NamedExtensionManager[Any] = stevedore.NamedExtensionManager(
        namespace,
        [name],
        on_load_failure_callback=_refuse,
        on_missing_entrypoints_callback=refuse_missing,
    )
    if len(found := {each.entry_point.value: each for each in manager.extensions}) > 1:
        raise DriverLoadFailure(name, f"several distributions bring it: {', '.join(sorted(found))}")
    return manager.extensions[0].plugin


def names(namespace: str) -> list[str]:
    """List the plugins installed in a namespace, without loading them."""
    return sorted({entry.name for entry in metadata.entry_points(group=namespace)})


def _refuse(_manager: object, entry: metadata.EntryPoint, error: BaseException) -> None:
    raise DriverLoadFailure(entry.name, describe_failure(entry, error)) from error


def describe_failure(entry: metadata.EntryPoint, error: BaseException) -> str:
    """Say in one line why an entry point does not load and what to do about it."""
    owner = _owner(entry)
    text = f"{entry.value.split(' ')[0]} of {owner} does not load: {error}"
    if isinstance(error, MessagingException):
        return text  # it says itself what to do
    if isinstance(error, ModuleNotFoundError) and error.name:
        # An entry point may name the extra that brings what it needs: "name = module:object [extra]".
        what = f"{owner}[{','.join(entry.extras)}]" if entry.extras else error.name.partition(".")[0]
        return f"{text}; install it with: pip install '{what}'"
    return f"{text}; reinstall or upgrade {owner}"


def _owner(entry: metadata.EntryPoint) -> str:
    """Name the distribution. The entry points in stevedore's cache do not say theirs."""
    same = metadata.entry_points(group=entry.group, name=entry.name)
    return next((each.dist.name for each in same if each.dist), "its distribution")
