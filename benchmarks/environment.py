"""What the benchmarks share: a local broker, transports to it, and topics on it."""

import functools
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from oslo_config import cfg

from benchmarks.child_protocol import PARTITIONS, TIMEOUT_SECONDS
from benchmarks.sizes import Size
from notifier_kafka import NotificationTransport, get_notification_transport
from notifier_kafka.config import options
from notifier_kafka.driver import Admin
from notifier_kafka_drivers.kafka.local.cluster import Cluster


class Environment(ExitStack):
    """One run. The broker starts when the first section uses it; each section leaves it healthy."""

    def __init__(self, size: Size, *, peers: bool = True, ends_with_parent: bool = False) -> None:
        """``ends_with_parent``: the broker starts fast, runs slowly, and ends with this process."""
        super().__init__()
        self.size, self.peers, self._ends_with_parent = size, peers, ends_with_parent
        self._topics: list[str] = []

    @functools.cached_property
    def directory(self) -> Path:
        """The files of this run."""
        return Path(self.enter_context(tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-")))

    @functools.cached_property
    def cluster(self) -> Cluster:
        """A cluster of one broker."""
        cluster = Cluster(self.directory / "kafka", ends_with_parent=self._ends_with_parent)
        self.callback(cluster.stop)
        cluster.start()
        return cluster

    @contextmanager
    def bus(self, client: str, options: str = "") -> Iterator[NotificationTransport]:
        """Connect with a client library, and with options of the driver."""
        # The bare loops drop nothing, so neither may we.
        bus = connect(f"{self.cluster.url}/?client={client}{options}", block_timeout=TIMEOUT_SECONDS)
        try:
            yield bus
        finally:
            bus.cleanup()

    def create_topic(self, partitions: int = PARTITIONS) -> str:
        """Create a topic for the priority info; return its name without the priority."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self._admin.create_topic(f"{name}.info", partitions)
        self._topics.append(f"{name}.info")
        return name

    def delete_topics(self) -> None:
        """Delete all topics that were created: together they would take tens of gigabytes."""
        while self._topics:
            self._admin.delete_topic(self._topics.pop())

    @functools.cached_property
    def _admin(self) -> Admin:
        return self.enter_context(self.bus("confluent-kafka")).driver.admin()


def connect(url: str, **notifications: Any) -> NotificationTransport:
    """Return a transport with these values for [notifications]."""
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    for name, value in notifications.items():
        conf.set_override(name, value, group=options.NOTIFICATIONS)
    return get_notification_transport(conf, url)
