"""What Kafka takes as the name of a topic, asked before a client sees it.

The client libraries find out at different moments, one after seconds, one only in a report.
"""

import re

_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")


def complaint(topic: str) -> str | None:
    """Say what is wrong with a topic's name, or None."""
    if _LEGAL.match(topic) and topic not in (".", ".."):
        return None
    shown = repr(topic if len(topic) <= 60 else topic[:57] + "...")
    return f"topic {shown}: a name has 1 to 249 of the characters A-Z a-z 0-9 . _ - and is not . or .."
