"""Jars that a command needs, fetched before a person's eyes."""

from notifier_kafka import jars
from notifier_kafka.cli.bar import Bar


def fetch(name: str) -> None:
    """Fetch what the cache lacks of a set, with a bar; say nothing where it lacks nothing."""
    if missing := len(jars.missing(name)):
        bar = Bar("fetch", missing)
        jars.fetch(name, progress=lambda there, _all: bar.show(there, f"{there} of {missing} jars"))
        bar.end(f"{missing} jars")
