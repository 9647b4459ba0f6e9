"""Which notifications were handled lately."""

import collections
from collections.abc import Sequence
from typing import TypeVar

from notifier_kafka.notification import Notification

Found = TypeVar("Found")


class Absent:
    """Stands for a record that the endpoints are not to get."""


DUPLICATE = Absent()
"""Stands for a notification that was handled already."""


class Window:
    """Remembers the last message ids that were handled, ``size`` of them at most.

    Only what was handled: what was refused or set aside is to be let through when it comes back.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ids: collections.OrderedDict[str, None] = collections.OrderedDict()

    def screen(self, found: Sequence[Found]) -> list[Found | Absent]:
        """Replace what was handled already, or stands twice in ``found``, by ``DUPLICATE``."""
        screened: list[Found | Absent] = []
        here: set[str] = set()
        for one in found:
            message_id = one.message_id if isinstance(one, Notification) else None
            if message_id is None:
                screened.append(one)
            elif message_id in self._ids or message_id in here:
                screened.append(DUPLICATE)
            else:
                here.add(message_id)
                screened.append(one)
        return screened

    def remember(self, handled: Sequence[object]) -> None:
        for one in handled:
            if isinstance(one, Notification) and one.message_id is not None:
                self._ids[one.message_id] = None
        while len(self._ids) > self._size:
            self._ids.popitem(last=False)
