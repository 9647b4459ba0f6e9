"""Which names of topics Kafka takes, checked before a client gets one; and names of our own.

The client libraries detect a wrong name at different times: one after seconds, one only in a report.
"""

import re
import uuid

_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
_PRIVATE = re.compile(r"notifier-kafka-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def private() -> str:
    """Make a name for a group with one member, or for a transaction. Its prefix is for ACLs."""
    return owned(str(uuid.uuid4()))


def owned(name: str) -> str:
    """Make the name of a transaction that one process takes over from another."""
    return f"notifier-kafka-{name}"


def is_private(group: str) -> bool:
    """Tell whether a group is one of those with one member, and ends with it."""
    return _PRIVATE.match(group) is not None


def complaint(topic: str) -> str | None:
    """Say what is wrong with a topic's name, or None."""
    if _LEGAL.match(topic) and topic not in (".", ".."):
        return None
    shown = repr(topic if len(topic) <= 60 else topic[:57] + "...")
    return f"topic {shown}: a name has 1 to 249 of the characters A-Z a-z 0-9 . _ - and is not . or .."
