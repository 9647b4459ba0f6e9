"""How names on the bus are spelled. Nobody else spells one."""

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
    return f"{group}.requeue"


def dead_letter_topic(group: str) -> str:
    """Name the topic where ``group`` sets aside what it cannot handle."""
    return f"{group}.dead-letters"
