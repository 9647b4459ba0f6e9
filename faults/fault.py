"""A fault, and the workload under which it is injected."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faults.run import Run


@dataclasses.dataclass(frozen=True)
class Fault:
    """``inject`` injects the fault once and repairs the system; it is called again while there is time.

    ``topologies`` are those where it can happen, the usual one first. ``publisher``, ``listener`` and
    ``url_options`` are added to the plans of the processes and to the URL. ``tolerates`` names
    violations that break no promise here. ``requires`` is a key of ``__main__.REQUIREMENTS``: where
    the machine does not fulfil it, the fault is left out.
    """

    name: str
    description: str
    inject: "Callable[[Run], None]"
    topologies: tuple[str, ...]
    publisher: dict[str, Any] = dataclasses.field(default_factory=dict)
    listener: dict[str, Any] = dataclasses.field(default_factory=dict)
    url_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    tolerates: frozenset[str] = frozenset()
    requires: str = ""


@dataclasses.dataclass(frozen=True)
class Workload:
    """At least so many seconds and so many notifications, of which each publisher sends ``rate`` a second.

    ``saboteur`` names a way in which the product is broken on purpose.
    """

    seconds: float = 10.0
    rate: float = 200.0
    saboteur: str = ""
    count: int = 0
