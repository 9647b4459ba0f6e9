"""Finds the topics that a job reads: by users' topic names, or by patterns of the log's names."""

import fnmatch
from collections.abc import Collection, Sequence

from notifier_kafka.contract.driver import Driver
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.wire import topic_names


def existing(driver: Driver, wanted: Sequence[str], own: Collection[str] = ()) -> list[str]:
    """List the topics that exist now: those of a name at every priority, or that match a pattern.

    Every run calls it, so that new topics are found. Patterns do not match the topics that the job
    writes itself, ``own``.
    """
    there = sorted(driver.admin().list_topics())
    names = {topic_names.bus_topic(name, p, driver.virtual_host) for name in wanted for p in PRIORITIES}
    patterns = [name for name in wanted if set(name) & set("*?[")]
    return [
        name
        for name in there
        if name in names or (name not in own and any(fnmatch.fnmatchcase(name, each) for each in patterns))
    ]
