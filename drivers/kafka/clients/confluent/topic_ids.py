"""Which topics there are behind the names, by their ids.

librdkafka goes on where it was in a topic that was deleted and made again, and says nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from notifier_kafka.contract import after_fork
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import MessagingException

from ...publishing.topic_creation import abandon
from .admin import Admin

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

EVERY = 5.0  # seconds
SOON = 1.0  # for partitions that are new


class Identities:
    """Asks brokers, on one connection for whoever asks. Blocks."""

    def __init__(self, connect: Callable[[], Admin]) -> None:
        self._connect = connect
        self._admin: Admin | None = None
        self._lock = threading.Lock()
        _FORKED.add(self)

    def __call__(self, topics: Iterable[str]) -> dict[str, str]:
        with self._lock:
            if self._admin is None:
                self._admin = self._connect()
            admin = self._admin
        return admin.identities(topics)

    def start_afresh(self) -> None:
        """Start anew in a child process: the connection is the parent's."""
        if self._admin is not None:
            abandon(self._admin)
        self._admin, self._lock = None, threading.Lock()


class Topics:
    """Knows of which topics the partitions of one consumer were when they were last its own."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._ids: dict[Partition, str] = {}
        self._answer: dict[Partition, str] = {}
        self._asked = -EVERY
        self._asking = False

    def made_again(self, owned: set[Partition]) -> set[Partition]:
        """Name those whose topic is another one by now. Asks every now and then, in a thread."""
        if self._asking:
            return set()
        answer, self._answer = self._answer, {}
        found = {partition: answer[partition] for partition in owned & answer.keys()} if answer else {}
        again = {partition for partition, now in found.items() if self._ids.get(partition, now) != now}
        self._ids |= found
        since = time.monotonic() - self._asked
        if since >= EVERY or (since >= SOON and not owned <= self._ids.keys()):
            self._start_asking(frozenset(owned))
        return again

    def _start_asking(self, owned: frozenset[Partition]) -> None:
        self._asked = time.monotonic()
        self._asking = True
        work = threading.Thread(target=self._ask, args=(owned,), name="notifier-kafka-ids", daemon=True)
        try:
            work.start()
        except RuntimeError as error:
            LOG.debug("Looking for topics that were made again: %s", error)
            self._asking = False

    def _ask(self, owned: frozenset[Partition]) -> None:
        try:
            found = self._identities({partition.topic for partition in owned})
            self._answer = {each: found[each.topic] for each in owned if each.topic in found}
        except MessagingException as error:
            LOG.debug("Looking for topics that were made again: %s", error)
        finally:
            self._asking = False
