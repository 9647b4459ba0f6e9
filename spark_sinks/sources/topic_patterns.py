"""Which topics on the bus a job reads: names as users know them, or patterns of the bus."""

import fnmatch
from collections.abc import Collection, Sequence

from notifier_kafka.contract.driver import Driver
from notifier_kafka.notification import PRIORITIES
from notifier_kafka.wire import topic_names


def existing(driver: Driver, wanted: Sequence[str], own: Collection[str] = ()) -> list[str]:
    """List the topics there are now: those of a name at every priority, or like a pattern.

    Asked anew for every run, so that new topics are found. A pattern does not mean what the
    job writes by its ``own`` outputs.
    """
    there = sorted(driver.admin().list_topics())
    names = {topic_names.bus_topic(name, p, driver.virtual_host) for name in wanted for p in PRIORITIES}
    patterns = [name for name in wanted if set(name) & set("*?[")]
    return [
        name
        for name in there
        if name in names or (name not in own and any(fnmatch.fnmatchcase(name, each) for each in patterns))
    ]
