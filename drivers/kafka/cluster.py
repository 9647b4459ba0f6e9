"""A real local Apache Kafka cluster in KRaft mode: on loopback, without Docker, from published jars.

``Cluster(directory).start()`` formats a new directory, or starts what is there again with
its data. What another process needs to look after it is in ``cluster.json``.
"""

import base64
import contextlib
import fcntl
import json
import random
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from notifier_kafka import java
from notifier_kafka.errors import ConfigurationError, TransportUnavailable

from .process import Process
from .server import Node, write_private

HOST = "127.0.0.1"
SIZES = (1, 3)
READY_TIMEOUT = 120.0
STOP_TIMEOUT = 20.0

# A port that the kernel also gives to outgoing connections may be taken by one, a client's
# own retry among them, while a node is down.
_PORTS = range(20000, 32000)


class Cluster:
    """One or three brokers on this machine. Not for production: they share its disk and its fate."""

    def __init__(
        self,
        directory: str | Path,
        nodes: int = 1,
        *,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        leashed: bool = False,
    ) -> None:
        """Describe a cluster; nothing is started or written.

        ``port`` is that of the first broker, the next ones follow; 0 takes free ones.
        ``properties`` are the broker's, by Apache Kafka's names, and win over those chosen here.
        ``leashed`` brokers are killed when this process ends, however that happens.
        """
        if nodes not in SIZES:
            raise ConfigurationError(f"a local cluster has 1 or 3 nodes, not {nodes}")
        self.directory = Path(directory).expanduser().absolute()
        self.nodes: list[Node] = []
        self._size = nodes
        self._port = port
        self._properties = dict(properties or {})
        self._leashed = leashed
        self._state: dict[str, Any] = {}

    @classmethod
    def open(cls, directory: str | Path) -> "Cluster":
        """Take over the cluster of a directory, running or not, started by whichever process."""
        cluster = cls(directory)
        state = _read(cluster.directory)
        if not state:
            raise ConfigurationError(f"no local cluster in {cluster.directory}; make one with: broker start")
        cluster._size = len(state["ports"])
        cluster._properties = state["properties"]
        cluster._adopt(state)
        return cluster

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers, as clients take them."""
        return ",".join(f"{HOST}:{port}" for port, _ in self._state["ports"])

    @property
    def url(self) -> str:
        """The transport URL of the cluster."""
        return f"kafka://{self.bootstrap}"

    def start(self, timeout: float = READY_TIMEOUT) -> None:
        """Start every node that is down; return when all take clients.

        Raises ``TransportUnavailable`` with the broker's own words when one does not; then
        the ones that this call started are stopped again.
        """
        with self._locked():
            state = _read(self.directory) or self._new_state()
            if len(state["ports"]) != self._size:
                raise ConfigurationError(
                    f"the cluster in {self.directory} has {len(state['ports'])} nodes, not {self._size}; "
                    "choose another directory"
                )
            if not self.nodes:
                self._adopt(state)
            down = [node for node in self.nodes if not node.alive()]
            if len(down) == len(self.nodes):
                self._configure()
            try:
                self._launch(down, timeout)
            except BaseException:
                _end(down)
                raise

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop every node; the data stay. A node that does not stop in time is killed."""
        with self._locked():
            _end(self.nodes, timeout)

    def start_node(self, number: int, timeout: float = READY_TIMEOUT) -> None:
        """Start one node again; return when it takes clients."""
        with self._locked():
            self._launch([self.node(number)], timeout)

    def stop_node(self, number: int, timeout: float = STOP_TIMEOUT) -> None:
        """Stop one node in good order."""
        _end([self.node(number)], timeout)

    def kill_node(self, number: int, signal_number: int = signal.SIGKILL) -> None:
        """Send a signal to one node; SIGSTOP and SIGCONT make it hang and go on."""
        self.node(number).kill(signal_number)

    def node(self, number: int) -> Node:
        """Return the node of that id, from 1 on."""
        for node in self.nodes:
            if node.number == number:
                return node
        raise ConfigurationError(f"there is no node {number}; there are 1 to {self._size}")

    def status(self) -> list[dict[str, Any]]:
        """Describe each node: its id, address, process id, and whether it is ``running`` or ``stopped``."""
        return [
            {
                "node": node.number,
                "address": f"{HOST}:{port}",
                "pid": node.process.pid if node.process and node.alive() else None,
                "state": "running" if node.alive() else "stopped",
                "log": str(node.log),
            }
            for node, (port, _) in zip(self.nodes, self._state["ports"], strict=True)
        ]

    def logs(self, number: int = 1) -> Path:
        """Say where the log of a node is."""
        return self.node(number).log

    def _new_state(self) -> dict[str, Any]:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        clients = [self._port + n for n in range(self._size)] if self._port else _free_ports(self._size)
        controllers = _free_ports(self._size, clients)
        ports = list(zip(clients, controllers, strict=True))
        return {"cluster_id": cluster_id, "ports": ports, "properties": self._properties, "processes": {}}

    def _adopt(self, state: dict[str, Any]) -> None:
        self._state = state
        found = java.find(java.KAFKA)
        for number in range(1, self._size + 1):
            node = Node(self.directory / f"node-{number}", number, found, leashed=self._leashed)
            if known := state["processes"].get(str(number)):
                node.process = Process(known["pid"], known["birth"])
            self.nodes.append(node)

    def _configure(self) -> None:
        for node in self.nodes:
            node.configure(_properties(node, self._state["ports"]) | self._properties)
            node.format(self._state["cluster_id"], [])

    def _launch(self, nodes: list[Node], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for node in nodes:
            process = node.launch()
            self._state["processes"][str(node.number)] = {"pid": process.pid, "birth": process.birth}
        # Before the wait: whoever is killed now leaves word of what is running.
        write_private(self.directory / "cluster.json", json.dumps(self._state, indent=1))
        for node in nodes:
            node.wait_ready(deadline)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self.directory / "lock").open("w")
        except OSError as error:
            raise ConfigurationError(f"{self.directory} cannot be used: {error.strerror}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _properties(node: Node, ports: list[tuple[int, int]]) -> dict[str, str]:
    client, controller = ports[node.number - 1]
    replicas = str(len(ports))
    in_sync = str(min(2, len(ports)))
    voters = ",".join(f"{number}@{HOST}:{port}" for number, (_, port) in enumerate(ports, 1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": voters,
        "listeners": f"CLIENT://{HOST}:{client},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"CLIENT://{HOST}:{client}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(node.directory / "data"),
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "10",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "10",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        # The first member of a group would otherwise wait 3 s for others.
        "group.initial.rebalance.delay.ms": "0",
        # A dead leader is replaced in 2.5 to 5 s rather than 9 to 12 s.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "controller.quorum.election.timeout.ms": "1000",
        "controller.quorum.fetch.timeout.ms": "1500",
        "replica.lag.time.max.ms": "5000",
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "200",
    }


def _free_ports(count: int, besides: list[int] | None = None) -> list[int]:
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        if port not in (besides or []) and _is_free(port):
            found.append(port)
    raise TransportUnavailable(f"no {count} free ports from {_PORTS.start} to {_PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker does: a port with connections that linger after a stop is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _end(nodes: list[Node], timeout: float = STOP_TIMEOUT) -> None:
    deadline = time.monotonic() + timeout
    # All at once: the last one of a quorum alone would wait for the others.
    for node in nodes:
        node.kill(signal.SIGTERM)
    for node in nodes:
        node.end(max(0.0, deadline - time.monotonic()))


def _read(directory: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((directory / "cluster.json").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{directory / 'cluster.json'} cannot be read: {error}") from error
    return state
