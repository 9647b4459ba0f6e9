"""Deduplication: the message ids of the notifications that were handled last."""

import collections
from collections.abc import Sequence
from typing import TypeVar

from notifier_kafka.notification import Notification

Decoded = TypeVar("Decoded")


class Skipped:
    """Stands for a record that no endpoint gets."""


DUPLICATE = Skipped()
"""Stands for a notification that was handled already."""


class RecentIds:
    """Remembers the last ``size`` message ids that were handled.

    An id is remembered only after its notification was handled: one that was requeued or
    became a dead letter is not a duplicate when it comes back.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ids: collections.OrderedDict[str, None] = collections.OrderedDict()

    def mark_duplicates(self, batch: Sequence[Decoded]) -> list[Decoded | Skipped]:
        """Replace by ``DUPLICATE`` what was handled already, or is in the batch a second time."""
        marked: list[Decoded | Skipped] = []
        in_batch: set[str] = set()
        for one in batch:
            message_id = one.message_id if isinstance(one, Notification) else None
            if message_id is None:
                marked.append(one)
            elif message_id in self._ids or message_id in in_batch:
                marked.append(DUPLICATE)
            else:
                in_batch.add(message_id)
                marked.append(one)
        return marked

    def remember(self, handled: Sequence[object]) -> None:
        for one in handled:
            if isinstance(one, Notification) and one.message_id is not None:
                self._ids[one.message_id] = None
        while len(self._ids) > self._size:
            self._ids.popitem(last=False)
