"""The systems under test: an SQLite log, one broker behind a proxy, three brokers.

The three brokers have disks or networks of their own where a fault needs that.
"""

import contextlib
import fcntl
import pathlib
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib import parse

from faults.processes import Bus, kafka_bus
from faults.topology import namespaces
from faults.topology.disks import Disk
from faults.topology.proxy import Proxy
from faults.topology.separate_brokers import SeparateBrokers
from faults.topology.small_disk import SmallDisk
from faults.workload import publisher
from notifier_kafka.jvm import java
from notifier_kafka.testing.clusters import AT_ONCE, mend
from notifier_kafka.wire import topic_names
from notifier_kafka_drivers.kafka.local.broker_users import Security
from notifier_kafka_drivers.kafka.local.cluster import Cluster

LEADERSHIP = re.compile(r"Completed transition to Leader\(.*?epoch=(\d+)")


class Topology:
    """A system under test: its cluster, if any, and the tools to disturb it."""

    def __init__(
        self,
        cluster: Any = None,
        *,
        proxy: Proxy | None = None,
        disk: SmallDisk | None = None,
        disks: Mapping[int, Disk] | None = None,
        separate_brokers: SeparateBrokers | None = None,
    ) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.disk = disk
        self.disks = disks or {}
        self.separate_brokers = separate_brokers

    def bus(self, client: str, directory: pathlib.Path, options: dict[str, Any]) -> Bus:
        if self.disk:
            return self.disk.bus
        if self.cluster is None:
            log = directory / "bus.db"
            # Without the options that only Kafka has.
            own = {"session_timeout": 2} | {name: options[name] for name in options if name == "busy_timeout"}
            return Bus("sqlite", f"sqlite:///{log}?{parse.urlencode(own)}", log)
        url, login = self.cluster.url, self.cluster.options()
        if self.proxy:
            url = f"kafka://{_broker_host()}:{self.proxy.port}"
        if self.separate_brokers:
            url = self.separate_brokers.url
        return kafka_bus(url, client, **login, **options)

    def repair(self) -> None:
        """Have everything run again, and reachable."""
        if self.proxy:
            self.proxy.repair()
        if self.cluster:
            mend(self.cluster)

    @contextlib.contextmanager
    def hung(self, bus: Bus) -> Iterator[None]:
        """Make the bus hang: stop every broker, or hold the lock of the log."""
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
        """Return the number of the node that leads the quorum; it is in the logs alone."""
        epochs = [
            (_last_epoch(node.log.read_text(errors="replace")), int(node.number))
            for node in self.cluster.nodes
        ]
        return max(epochs)[1]


def _last_epoch(log: str) -> int:
    return max(map(int, LEADERSHIP.findall(log)), default=-1)


@contextlib.contextmanager
def _sqlite(_directory: pathlib.Path) -> Iterator[Topology]:
    yield Topology()


@contextlib.contextmanager
def _small_disk(directory: pathlib.Path) -> Iterator[Topology]:
    directory.mkdir()
    with contextlib.closing(SmallDisk(directory)) as disk:
        yield Topology(disk=disk)


@contextlib.contextmanager
def _three_brokers(directory: pathlib.Path) -> Iterator[Topology]:
    # With logins, brokers talk to each other on ports of their own, so that they can be separated.
    with _cluster(Cluster(directory, 3, security=Security(sasl="plain"), ends_with_parent=True)) as cluster:
        yield Topology(cluster)


@contextlib.contextmanager
def _proxied_broker(directory: pathlib.Path) -> Iterator[Topology]:
    proxy = Proxy()
    properties = {"advertised.listeners": f"CLIENT://{_broker_host()}:{proxy.port}"}
    with (
        _cluster(Cluster(directory, properties=properties, ends_with_parent=True)) as cluster,
        contextlib.closing(proxy),
    ):
        proxy.target = cluster.saved_state.ports[0].client
        yield Topology(cluster, proxy=proxy)


def _broker_host() -> str:
    return namespaces.BROKER_NAME if namespaces.is_entered() else "127.0.0.1"


@contextlib.contextmanager
def _separate_disks(directory: pathlib.Path) -> Iterator[Topology]:
    with contextlib.ExitStack() as stack:
        cluster = Cluster(directory, 3, ends_with_parent=True)
        disks = {node.number: Disk(node.data) for node in cluster.nodes}
        for disk in disks.values():
            stack.callback(disk.close)
        stack.enter_context(_cluster(cluster))
        yield Topology(cluster, disks=disks)


@contextlib.contextmanager
def _separate_brokers(directory: pathlib.Path) -> Iterator[Topology]:
    directory.mkdir()
    cluster = Cluster(directory, 3, ends_with_parent=True)
    with contextlib.closing(SeparateBrokers(cluster.saved_state.ports)) as separate_brokers:
        cluster.java = separate_brokers.java(java.find(java.KAFKA).path, directory / "java")
        with _cluster(cluster):
            yield Topology(cluster, separate_brokers=separate_brokers)


@contextlib.contextmanager
def _cluster(cluster: Any) -> Iterator[Any]:
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop(AT_ONCE)


TOPOLOGIES: dict[str, Callable[[pathlib.Path], contextlib.AbstractContextManager[Topology]]] = {
    "three-brokers": _three_brokers,
    "proxied-broker": _proxied_broker,
    "separate-disks": _separate_disks,
    "separate-brokers": _separate_brokers,
    "small-disk": _small_disk,
    "sqlite": _sqlite,
}
