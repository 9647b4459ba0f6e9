"""What a consumer knows of its topics and does not tell: their ids, and which are denied.

It goes on where it was in a topic that was deleted and created again, and waits silently for a topic
that it has no right to see.

Waits for: nothing, neither is reported upstream yet. Java's consumer has KAFKA-12257 for the first.
"""

from collections.abc import Iterable
from typing import Any


def topic_ids(consumer: Any, topics: Iterable[str]) -> dict[str, str]:
    """Return the ids of those topics that exist."""
    cluster = consumer._client.cluster
    found = {topic: cluster.topic_id(topic) for topic in topics}
    # None, or all zero, while there is no such topic.
    return {topic: str(number) for topic, number in found.items() if number and number.int}


def denied_topics(consumer: Any) -> set[str]:
    """Return the topics that the brokers refuse to describe to us."""
    denied: set[str] = consumer._client.cluster.unauthorized_topics
    return denied
