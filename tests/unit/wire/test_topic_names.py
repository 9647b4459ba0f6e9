"""The names of topics on the bus."""

import re

import pytest

from notifier_kafka.wire import topic_names


@pytest.mark.parametrize(
    ("topic", "priority", "host", "spelled"),
    [
        ("notifications", "INFO", None, "notifications.info"),
        ("notifications", "warn", "", "notifications.warn"),
        ("notifications", "error", "nova", "notifications.error.nova"),
        ("notifications.{priority}", "INFO", "nova", "notifications.info"),
        ("notifications.{priority}.cinder", "INFO", None, "notifications.info.cinder"),
    ],
)
def test_bus_topic(topic: str, priority: str, host: str | None, spelled: str) -> None:
    assert topic_names.bus_topic(topic, priority, host) == spelled


def test_topics_of_a_group_are_legal_and_distinct_whatever_its_name() -> None:
    groups = ["nova", "no va", "no/va", "nö va", "x" * 300, "x" * 301]
    names = [topic_names.dead_letter_topic(group) for group in groups]
    names += [topic_names.requeue_topic(group, origin) for group in groups for origin in ("a.info", "b.info")]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) for name in names)
    assert topic_names.requeue_topic("nova", "a.info") == "nova.requeue.a.info"
