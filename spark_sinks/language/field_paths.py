"""Paths into a notification: a small subset of JSONPath, with names and indexes only.

``$.payload.flavor['memory mb']``, ``$.payload.disks[0].size``, ``$.publisher_id``. A member's
name alone, such as ``event_type``, is a path too. ``service`` and ``host`` are the parts of the
publisher before and after its first dot.
"""

import re
from dataclasses import dataclass

from notifier_kafka.contract import did_you_mean

TREES = ("payload", "context")
TEXTS = ("event_type", "publisher_id", "priority", "message_id", "topic", "host", "service")
ROOTS = TREES + TEXTS

# Names of the same members in Ceilometer's and oslo's files.
_ALIASES = {"_context": "context", "publisher": "publisher_id"}
_ROOTS_HINT = f"a path begins with one of {', '.join(ROOTS)}, as in $.payload.size"
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*?@\s()]+) | \[(?P<index>\d{1,9})\]
    | \['(?P<single>[^']+)'\] | \["(?P<double>[^"]+)"\]""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class FieldPath:
    """A member of the notification, and the names and indexes below it."""

    root: str
    steps: tuple[str | int, ...] = ()

    def __repr__(self) -> str:
        # Checkpoints hold a hash of it (job.settings.metric_digests), from when the class was called Path.
        return f"Path(root={self.root!r}, steps={self.steps!r})"

    def __str__(self) -> str:
        return f"$.{self.root}{''.join(map(_spell, self.steps))}" if self.steps else self.root

    @property
    def below(self) -> str:
        """The steps in the syntax of Spark's functions on VARIANT."""
        return "$" + "".join(map(_spell, self.steps))


def parse(text: str) -> FieldPath:
    """Parse a path. Raises ``ValueError`` with the reason."""
    steps = _steps(text) if text.startswith("$") else [text]
    if not steps or not isinstance(steps[0], str):
        raise ValueError(f"path {text!r}: {_ROOTS_HINT}")
    root = _ALIASES.get(steps[0], steps[0])
    if root not in ROOTS:
        hint = did_you_mean.hint(root, ROOTS, _ROOTS_HINT)
        raise ValueError(f"path {text!r}: a notification has no {root!r}; {hint}")
    if len(steps) > 1 and root not in TREES:
        raise ValueError(f"path {text!r}: {root} is text and has nothing below it")
    return FieldPath(root, tuple(steps[1:]))


def _steps(text: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if not found:
            raise ValueError(
                f"path {text!r}: {text[at:]!r} is not .name, ['name'] or [0]; "
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
