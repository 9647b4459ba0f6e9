"""Tells whether a topic was deleted and created again under the same name, by the ids of topics.

The client libraries tell the ids. What follows from them is decided here, once for both.
"""

from collections.abc import Mapping

from notifier_kafka.contract.driver import Partition


class TopicIds:
    """Remembers which topic each partition of one consumer was of. Never used by two threads at once."""

    def __init__(self) -> None:
        self._ids: dict[Partition, str] = {}

    def recreated(self, found: Mapping[Partition, str]) -> set[Partition]:
        """Name the partitions whose topic has another id than when it was last found."""
        recreated = {partition for partition, now in found.items() if self._ids.get(partition, now) != now}
        self._ids |= found
        return recreated
