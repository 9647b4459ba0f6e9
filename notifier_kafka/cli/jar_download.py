"""Jars that a command needs, fetched before a person's eyes."""

from pathlib import Path

from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.jvm import jars


def fetch(name: str, java_option: str | None = None) -> list[Path]:
    """Return a set of jars; what the cache lacks of it is fetched with a bar."""
    missing = len(jars.missing(name))
    if not missing:
        return jars.fetch(name)
    bar = Bar("fetch", missing)
    found = jars.fetch(
        name,
        java_option=java_option,
        progress=lambda there, _all: bar.show(there, f"{there} of {missing} jars"),
    )
    bar.end(f"{missing} jars")
    return found
