"""What became of notifications, in numbers: for programs, and as Prometheus reads them."""

from collections.abc import Mapping
from typing import NamedTuple

_HELP = {
    "accepted": ("counter", "Records that callers handed over, one for each notification and topic."),
    "pending": ("gauge", "Records in memory, neither acknowledged nor on the spool's disk."),
    "spooled": ("counter", "Records written to the spool."),
    "forwarded": ("counter", "Records that came from the spool and were acknowledged."),
    "waiting": ("gauge", "Records in the spool files of this process that are not sent."),
    "lost": ("counter", "Records that were given up, by reason."),
}


class Stats(NamedTuple):
    """Counts since the transport was made; ``lost`` by reason.

    What is neither pending, waiting nor lost was acknowledged.
    """

    accepted: int
    pending: int
    spooled: int
    forwarded: int
    waiting: int
    lost: Mapping[str, int]

    def prometheus(self) -> str:
        """Spell the counts in Prometheus' text format, for a program's own exporter to add."""
        lines = []
        for name, (kind, text) in _HELP.items():
            metric = f"notifier_kafka_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
            value = getattr(self, name)
            if name == "lost":
                # The names of error classes and our own words: nothing that needs escaping.
                lines += [f'{metric}{{reason="{reason}"}} {count}' for reason, count in sorted(value.items())]
            else:
                lines.append(f"{metric} {value}")
        return "\n".join(lines) + "\n"
