"""What the measurements share: a real local broker, transports to it, topics on it."""

import functools
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from oslo_config import cfg

from benchmarks.child_protocol import PARTITIONS, PATIENCE
from benchmarks.sizes import Size
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Admin
from notifier_kafka.publishing import transport
from notifier_kafka_drivers.kafka.local.cluster import Cluster


class Scene(ExitStack):
    """One run. The broker starts when the first section asks for it; leave it running well."""

    def __init__(self, size: Size, *, peers: bool = True, ends_with_parent: bool = False) -> None:
        """Prepare a run. An ``ends_with_parent`` broker starts faster, runs slower, and never outlives us."""
        super().__init__()
        self.size, self.peers, self._ends_with_parent = size, peers, ends_with_parent
        self._topics: list[str] = []

    @functools.cached_property
    def directory(self) -> Path:
        """A place for whatever a run needs on disk."""
        return Path(self.enter_context(tempfile.TemporaryDirectory(prefix="notifier-kafka-benchmarks-")))

    @functools.cached_property
    def cluster(self) -> Cluster:
        """One broker."""
        cluster = Cluster(self.directory / "kafka", ends_with_parent=self._ends_with_parent)
        self.callback(cluster.stop)
        cluster.start()
        return cluster

    @contextmanager
    def bus(self, client: str, options: str = "") -> Iterator[transport.NotificationTransport]:
        """Connect with a client library, and with options of the driver's."""
        # The bare loops never drop: neither may what is compared with them.
        bus = connect(f"{self.cluster.url}/?client={client}{options}", block_timeout=PATIENCE)
        try:
            yield bus
        finally:
            bus.cleanup()

    def topic(self, partitions: int = PARTITIONS) -> str:
        """Make a topic, for priority info; return what users call it."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self._admin.create_topic(f"{name}.info", partitions)
        self._topics.append(f"{name}.info")
        return name

    def clear(self) -> None:
        """Delete all topics that were made: in full, they would be tens of gigabytes."""
        while self._topics:
            self._admin.delete_topic(self._topics.pop())

    @functools.cached_property
    def _admin(self) -> Admin:
        return self.enter_context(self.bus("confluent-kafka")).driver.admin()


def connect(url: str, **notifications: Any) -> transport.NotificationTransport:
    """Make a transport of this program, with values for [notifications]."""
    conf = cfg.ConfigOpts()
    conf([], project="benchmarks", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    for name, value in notifications.items():
        conf.set_override(name, value, group=options.NOTIFICATIONS)
    return transport.get_notification_transport(conf, url)
