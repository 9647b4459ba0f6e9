"""How names on the bus are spelled. Nobody else spells one."""

import re
import zlib

PRIORITY_PLACE = "{priority}"


def bus_topic(topic: str, priority: str, virtual_host: str | None = None) -> str:
    """Name the topic on the bus for a user's topic at a priority.

    A topic with ``{priority}`` in it is taken literally otherwise, so that a listener
    can name any spelling, for example that of a sender with another virtual host.
    """
    if PRIORITY_PLACE in topic:
        return topic.replace(PRIORITY_PLACE, priority.lower())
    name = f"{topic}.{priority.lower()}"
    return f"{name}.{virtual_host}" if virtual_host else name


def requeue_topic(group: str, origin: str) -> str:
    """Name the topic that brings what was refused back to the members of ``group`` that listen to its origin.

    One for each origin: members of a group need not all listen to the same topics.
    """
    return _legal(f"{group}.requeue.{origin}")


def dead_letter_topic(group: str) -> str:
    """Name the topic where ``group`` sets aside what it cannot handle."""
    return _legal(f"{group}.dead-letters")


def _legal(name: str) -> str:
    """Spell a name that has a group's in it, which may be any text, as a topic's."""
    spelled = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:240]
    return spelled if spelled == name else f"{spelled}-{zlib.crc32(name.encode()):08x}"
