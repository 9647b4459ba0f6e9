"""Paths into a notification: a small subset of JSONFieldPath, never more than names and indexes.

``$.payload.flavor['memory mb']``, ``$.payload.disks[0].size``, ``$.publisher_id``; a member
alone, such as ``event_type``, stands for itself. ``host`` and ``service`` are what follows
and what precedes the first dot of the publisher.
"""

import difflib
import re
from dataclasses import dataclass

TREES = ("payload", "context")
TEXTS = ("event_type", "publisher_id", "priority", "message_id", "topic", "host", "service")
ROOTS = TREES + TEXTS

# A spelling of Ceilometer's and oslo's files for the same members.
_ALIASES = {"_context": "context", "publisher": "publisher_id"}
_ROOTS_HINT = f"it begins with one of {', '.join(ROOTS)}, as in $.payload.size"
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*?@\s()]+) | \[(?P<index>\d{1,9})\]
    | \['(?P<single>[^']+)'\] | \["(?P<double>[^"]+)"\]""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class FieldPath:
    """A member of the notification, and below it names and indexes."""

    root: str
    steps: tuple[str | int, ...] = ()

    def __repr__(self) -> str:
        # Checkpoints hold a hash of it (job.settings.metric_digests), from when the class was called Path.
        return f"Path(root={self.root!r}, steps={self.steps!r})"

    def __str__(self) -> str:
        return f"$.{self.root}{''.join(map(_spell, self.steps))}" if self.steps else self.root

    @property
    def below(self) -> str:
        """Spell the steps as Spark's functions on VARIANT have them."""
        return "$" + "".join(map(_spell, self.steps))


def parse(text: str) -> FieldPath:
    """Read a path, or raise ``ValueError`` that says what is wrong with it."""
    steps = _steps(text) if text.startswith("$") else [text]
    if not steps or not isinstance(steps[0], str):
        raise ValueError(f"path {text!r}: {_ROOTS_HINT}")
    root = _ALIASES.get(steps[0], steps[0])
    if root not in ROOTS:
        near = difflib.get_close_matches(root, ROOTS, 1)
        hint = f"did you mean {near[0]}?" if near else _ROOTS_HINT
        raise ValueError(f"path {text!r}: a notification has no {root!r}; {hint}")
    if len(steps) > 1 and root not in TREES:
        raise ValueError(f"path {text!r}: {root} is text, there is nothing below it")
    return FieldPath(root, tuple(steps[1:]))


def _steps(text: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if not found:
            raise ValueError(
                f"path {text!r}: {text[at:]!r} is none of .name, ['name'] and [0]; "
                "wildcards, filters and slices are not supported"
            )
        index = found["index"]
        steps.append(int(index) if index else found["name"] or found["single"] or found["double"])
        at = found.end()
    return steps


def _spell(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f'["{step}"]' if "'" in step else f"['{step}']"
