"""Where faults take place: an SQLite log, one broker behind a proxy, three brokers.

Those three have disks of their own, or networks of their own, where a fault is about that.
"""

import contextlib
import fcntl
import pathlib
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib import parse

from faults.harness import Bus, kafka
from faults.topology import namespaces
from faults.topology.disks import Disk
from faults.topology.proxy import Proxy
from faults.topology.separate_brokers import Apart
from faults.topology.small_disk import SmallDisk
from faults.workload import publisher
from notifier_kafka.jvm import java
from notifier_kafka.testing.clusters import AT_ONCE, mend
from notifier_kafka.wire import topic_names
from notifier_kafka_drivers.kafka.local.broker_users import Security
from notifier_kafka_drivers.kafka.local.cluster import Cluster

LEADERSHIP = re.compile(r"Completed transition to Leader\(.*?epoch=(\d+)")


class Place:
    """What is there: a log, perhaps brokers to harm, and what they can be harmed by."""

    def __init__(
        self,
        cluster: Any = None,
        *,
        proxy: Proxy | None = None,
        disk: SmallDisk | None = None,
        disks: Mapping[int, Disk] | None = None,
        apart: Apart | None = None,
    ) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.disk = disk
        self.disks = disks or {}
        self.apart = apart

    def bus(self, client: str, directory: pathlib.Path, more: dict[str, Any]) -> Bus:
        if self.disk:
            return self.disk.bus
        if self.cluster is None:
            log = directory / "bus.db"
            # What concerns Kafka alone is left out.
            own = {"session_timeout": 2} | {name: more[name] for name in more if name == "busy_timeout"}
            return Bus("sqlite", f"sqlite:///{log}?{parse.urlencode(own)}", log)
        url, login = self.cluster.url, self.cluster.options()
        if self.proxy:
            url = f"kafka://{_proxied_host()}:{self.proxy.port}"
        if self.apart:
            url = self.apart.url
        return kafka(url, client, **login, **more)

    def mend(self) -> None:
        if self.proxy:
            self.proxy.mend()
        if self.cluster:
            mend(self.cluster)

    @contextlib.contextmanager
    def hung(self, bus: Bus) -> Iterator[None]:
        """Have the bus hang: every broker, or the lock of the log."""
        if self.cluster is None:
            with open(f"{bus.log}-lock", "rb+") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                yield
            return
        with self.suspended([node.number for node in self.cluster.nodes]):
            yield

    @contextlib.contextmanager
    def suspended(self, numbers: Sequence[int]) -> Iterator[None]:
        for number in numbers:
            self.cluster.kill_node(number, signal.SIGSTOP)
        try:
            yield
        finally:
            for number in numbers:
                self.cluster.kill_node(number, signal.SIGCONT)

    def leader(self, bus: Bus, topic: str) -> int:
        """Return the number of the broker that leads the first partition of a topic."""
        connected = publisher.connect(bus.url, {})
        details = connected.driver.admin().describe_topic(topic_names.bus_topic(topic, "info")).details
        connected.cleanup()
        return int(details["partition 0"].split()[1].rstrip(";"))

    def controller(self) -> int:
        """Return the number of the node that leads the quorum: no client's call tells it."""
        epochs = [
            (_last_epoch(node.log.read_text(errors="replace")), int(node.number))
            for node in self.cluster.nodes
        ]
        return max(epochs)[1]


def _last_epoch(log: str) -> int:
    return max(map(int, LEADERSHIP.findall(log)), default=-1)


@contextlib.contextmanager
def _sqlite(_directory: pathlib.Path) -> Iterator[Place]:
    yield Place()


@contextlib.contextmanager
def _small_disk(directory: pathlib.Path) -> Iterator[Place]:
    directory.mkdir()
    with contextlib.closing(SmallDisk(directory)) as disk:
        yield Place(disk=disk)


@contextlib.contextmanager
def _three(directory: pathlib.Path) -> Iterator[Place]:
    # With logins, brokers talk to each other on ports of their own, so that they can be cut apart.
    with _cluster(Cluster(directory, 3, security=Security(sasl="plain"), ends_with_parent=True)) as cluster:
        yield Place(cluster)


@contextlib.contextmanager
def _proxied(directory: pathlib.Path) -> Iterator[Place]:
    proxy = Proxy()
    told = {"advertised.listeners": f"CLIENT://{_proxied_host()}:{proxy.port}"}
    with (
        _cluster(Cluster(directory, properties=told, ends_with_parent=True)) as cluster,
        contextlib.closing(proxy),
    ):
        proxy.target = cluster.saved_state.ports[0].client
        yield Place(cluster, proxy=proxy)


def _proxied_host() -> str:
    return namespaces.NAME if namespaces.owned() else "127.0.0.1"


@contextlib.contextmanager
def _disks(directory: pathlib.Path) -> Iterator[Place]:
    with contextlib.ExitStack() as stack:
        cluster = Cluster(directory, 3, ends_with_parent=True)
        disks = {node.number: Disk(node.data) for node in cluster.nodes}
        for disk in disks.values():
            stack.callback(disk.close)
        stack.enter_context(_cluster(cluster))
        yield Place(cluster, disks=disks)


@contextlib.contextmanager
def _apart(directory: pathlib.Path) -> Iterator[Place]:
    directory.mkdir()
    cluster = Cluster(directory, 3, ends_with_parent=True)
    with contextlib.closing(Apart(cluster.saved_state.ports)) as apart:
        cluster.java = apart.java(java.find(java.KAFKA).path, directory / "java")
        with _cluster(cluster):
            yield Place(cluster, apart=apart)


@contextlib.contextmanager
def _cluster(cluster: Any) -> Iterator[Any]:
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop(AT_ONCE)


PLACES: dict[str, Callable[[pathlib.Path], contextlib.AbstractContextManager[Place]]] = {
    "three": _three,
    "proxied": _proxied,
    "disks": _disks,
    "apart": _apart,
    "small-disk": _small_disk,
    "sqlite": _sqlite,
}
