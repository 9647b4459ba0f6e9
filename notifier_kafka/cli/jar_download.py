"""Downloading the jars that a command needs, with a progress bar."""

from pathlib import Path

from notifier_kafka.cli.output.progress_bar import Bar
from notifier_kafka.jvm import jars


def fetch(name: str, java_option: str | None = None) -> list[Path]:
    """Return a set of jars; download with a bar those that the cache does not have."""
    missing = len(jars.missing(name))
    if not missing:
        return jars.fetch(name)
    bar = Bar("fetch", missing)
    found = jars.fetch(
        name,
        java_option=java_option,
        progress=lambda done, _total: bar.show(done, f"{done} of {missing} jars"),
    )
    bar.end(f"{missing} jars")
    return found
