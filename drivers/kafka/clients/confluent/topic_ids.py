"""Asks the brokers for the ids of topics.

librdkafka keeps its position in a topic that was deleted and created again, and reports nothing.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from notifier_kafka.contract import after_fork, threads
from notifier_kafka.contract.driver import Partition
from notifier_kafka.errors import MessagingException

from .admin import Admin

LOG = logging.getLogger(__name__)

_FORKED = after_fork.renewed()

POLL_SECONDS = 5.0
POLL_FOR_NEW_SECONDS = 1.0  # while there are partitions whose topic's id is not known yet


class TopicIdLookup:
    """Asks on one connection for all consumers. Blocks."""

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
        return admin.topic_ids(topics)

    def start_afresh(self) -> None:
        """Start from nothing in a child process: the connection is the parent's."""
        if self._admin is not None:
            after_fork.never_free(self._admin)
        self._admin, self._lock = None, threading.Lock()


class TopicIdPoller:
    """Asks every few seconds for the topics of one consumer, in a thread."""

    def __init__(self, lookup: TopicIdLookup) -> None:
        self._lookup = lookup
        self._known: set[Partition] = set()
        self._answer: dict[Partition, str] = {}
        self._asked_at = -POLL_SECONDS
        self._asking = False

    def found(self, owned: set[Partition]) -> dict[Partition, str]:
        """Return what was found since the last call; start asking again when it is time."""
        if self._asking:
            return {}
        answer, self._answer = self._answer, {}
        found = {partition: answer[partition] for partition in owned & answer.keys()} if answer else {}
        self._known |= found.keys()
        since = time.monotonic() - self._asked_at
        if since >= POLL_SECONDS or (since >= POLL_FOR_NEW_SECONDS and not owned <= self._known):
            self._start_asking(frozenset(owned))
        return found

    def _start_asking(self, owned: frozenset[Partition]) -> None:
        self._asked_at = time.monotonic()
        self._asking = True
        work = threading.Thread(target=self._ask, args=(owned,), name="notifier-kafka-ids", daemon=True)
        try:
            threads.start(work, "ask for the ids of topics")
        except MessagingException as error:
            LOG.debug("Looking for recreated topics: %s", error)
            self._asking = False

    def _ask(self, owned: frozenset[Partition]) -> None:
        try:
            found = self._lookup({partition.topic for partition in owned})
            self._answer = {each: found[each.topic] for each in owned if each.topic in found}
        except MessagingException as error:
            LOG.debug("Looking for recreated topics: %s", error)
        finally:
            self._asking = False
