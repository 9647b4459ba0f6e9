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


def requeue_topic(group: str) -> str:
    """Name the topic that brings refused notifications back to ``group`` alone."""
    return f"{_legal(group)}.requeue"


def dead_letter_topic(group: str) -> str:
    """Name the topic where ``group`` sets aside what it cannot handle."""
    return f"{_legal(group)}.dead-letters"


def _legal(group: str) -> str:
    """Spell a group's name, which may be any text, as a part of a topic's name."""
    spelled = re.sub(r"[^A-Za-z0-9._-]", "_", group)[:200]
    return spelled if spelled == group else f"{spelled}-{zlib.crc32(group.encode()):08x}"
