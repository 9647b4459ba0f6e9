"""A publisher's counts: for programs, and in Prometheus' text format."""

from collections.abc import Mapping
from typing import NamedTuple

_HELP = {
    "accepted": ("counter", "Records that callers handed over, one for each notification and topic."),
    "pending": ("gauge", "Records in memory, neither acknowledged nor on the spool's disk."),
    "spooled": ("counter", "Records written to the spool."),
    "forwarded": ("counter", "Records that came from the spool and were acknowledged."),
    "waiting": ("gauge", "Records in the spool files of this process that are not sent yet."),
    "lost": ("counter", "Records that were given up, by reason."),
}


class Stats(NamedTuple):
    """Counts since the transport was made; ``lost`` by reason.

    A record that is neither pending, waiting nor lost was acknowledged.
    """

    accepted: int
    pending: int
    spooled: int
    forwarded: int
    waiting: int
    lost: Mapping[str, int]

    def prometheus(self) -> str:
        """Write the counts in Prometheus' text format, which a program's own exporter can add."""
        lines = []
        for name, (kind, text) in _HELP.items():
            metric = f"notifier_kafka_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
            value = getattr(self, name)
            if name == "lost":
                # Reasons are names of error classes and our own words: no character needs escaping.
                lines += [f'{metric}{{reason="{reason}"}} {count}' for reason, count in sorted(value.items())]
            else:
                lines.append(f"{metric} {value}")
        return "\n".join(lines) + "\n"
