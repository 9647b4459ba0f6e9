"""The names of topics on the bus. All of them are made here."""

import re
import zlib

PRIORITY_PLACEHOLDER = "{priority}"


def bus_topic(topic: str, priority: str, virtual_host: str | None = None) -> str:
    """Return the name on the bus of a user's topic at a priority.

    A topic that contains ``{priority}`` is otherwise taken literally: so a listener can use
    any name, for example that of a sender with another virtual host.
    """
    if PRIORITY_PLACEHOLDER in topic:
        return topic.replace(PRIORITY_PLACEHOLDER, priority.lower())
    name = f"{topic}.{priority.lower()}"
    return f"{name}.{virtual_host}" if virtual_host else name


def requeue_topic(group: str, origin: str) -> str:
    """Name the topic that redelivers a group's requeued notifications of the topic ``origin``.

    One for each origin: members of a group need not all listen to the same topics.
    """
    return _legal(f"{group}.requeue.{origin}")


def dead_letter_topic(group: str) -> str:
    """Name the topic that keeps the notifications that ``group`` cannot handle."""
    return _legal(f"{group}.dead-letters")


def _legal(name: str) -> str:
    """Make a legal topic name. It contains a group's name, which may be any text."""
    spelled = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:240]
    return spelled if spelled == name else f"{spelled}-{zlib.crc32(name.encode()):08x}"
