"""A real local Apache Kafka cluster in KRaft mode: on loopback, without Docker, from published jars.

``Cluster(directory).start()`` creates a cluster in a new directory, or starts the one that is
there with its data. Another process opens it with ``Cluster.open(directory)``.
"""

import contextlib
import fcntl
import functools
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

from notifier_kafka.errors import ConfigurationError, TransportUnavailable
from notifier_kafka.jvm import jars, java

from . import fast_start
from .broker_node import BrokerNode, has_usual_format
from .broker_users import ADMIN, CLIENT, Security, client_options, ini, scram_arguments, write_private
from .certificates import Authority
from .java_command import Runtime
from .listener_properties import HOST, properties, security_properties
from .saved_state import SavedState, is_free

READY_TIMEOUT_SECONDS = 120.0
# When three nodes stop, the last ones wait for a quorum that is gone, so they are killed.
STOP_TIMEOUT_SECONDS = 10.0
OPEN = Security()


class Cluster:
    """One or three brokers on this machine. Not for production: they all fail when the machine fails.

    A cluster belongs to one thread at a time; ``kill_node`` may be called from any.
    """

    def __init__(
        self,
        directory: str | Path,
        nodes: int = 1,
        *,
        port: int = 0,
        security: Security = OPEN,
        properties: Mapping[str, str] | None = None,
        ends_with_parent: bool = False,
    ) -> None:
        """Describe a cluster; nothing is started or written.

        ``port`` is that of the first broker, the others take the next ones; 0 takes free ports.
        ``properties`` are broker properties by Apache Kafka's names; they override those chosen here.
        With ``ends_with_parent`` the kernel kills the brokers when this process ends, also when it is
        killed. Such brokers start faster and run slower.
        """
        self.directory = Path(directory).expanduser().absolute()
        if "," in str(self.directory):
            raise ConfigurationError(
                f"{self.directory} has a comma, which Kafka takes for the end of the path"
            )
        self.saved_state = SavedState.new(nodes, port, security, properties or {})
        self.nodes = [
            BrokerNode(self.directory / f"node-{number}", number, None, ends_with_parent=ends_with_parent)
            for number in range(1, nodes + 1)
        ]
        # For java.find: a program, a JAVA_HOME, or None for the first Java that suits.
        self.java: str | None = None
        self._authority = Authority(self.directory / "tls")
        self._fixed_port = port
        self._refresh()

    @classmethod
    def open(cls, directory: str | Path) -> "Cluster":
        """Open the cluster of a directory, running or not, whichever process started it."""
        found = SavedState.load(Path(directory).expanduser().absolute())
        if found is None:
            raise ConfigurationError(
                f"no local cluster in {directory}; create one with: notifier-kafka broker start"
            )
        return cls(directory, len(found.ports), security=found.security)

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers, as clients take them."""
        return ",".join(f"{HOST}:{ports.client}" for ports in self.saved_state.ports)

    @property
    def url(self) -> str:
        """The transport URL of the cluster, without a password."""
        return f"kafka://{self.bootstrap}"

    def options(self, user: str = ADMIN) -> dict[str, str]:
        """The options of ``[drivers_kafka]`` with which ``admin`` or ``client`` connects."""
        return client_options(self.saved_state.security, self.saved_state.passwords, self._authority, user)

    def ini(self, user: str = ADMIN) -> Path:
        """The configuration file with which ``admin`` or ``client`` connects; written by ``start``."""
        return self.directory / f"{user}.conf"

    def start(self, timeout: float = READY_TIMEOUT_SECONDS) -> None:
        """Start every node that is down; return when all accept clients.

        When a node does not start, it stops those that it started and raises
        ``TransportUnavailable`` with the error from the node's log.
        """
        with self._locked():
            self._refresh()
            down = [node for node in self.nodes if not node.is_alive()]
            if len(down) == len(self.nodes):
                self._configure()
            self._launch(down, timeout)

    def stop(self, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop every node; keep the data. A node that does not stop in time is killed."""
        with self._locked():
            self._refresh()
            _end(self.nodes, timeout)

    def start_node(self, number: int, timeout: float = READY_TIMEOUT_SECONDS) -> None:
        """Start one node; return when it accepts clients."""
        with self._locked():
            if not self.node(number).is_alive():
                self._launch([self.node(number)], timeout)

    def stop_node(self, number: int, timeout: float = STOP_TIMEOUT_SECONDS) -> None:
        """Stop one node gracefully; kill it after ``timeout``."""
        _end([self.node(number)], timeout)

    def kill_node(self, number: int, signal_number: int = signal.SIGKILL) -> None:
        """Send a signal to one node; SIGSTOP makes it hang, SIGCONT makes it continue."""
        self.node(number).kill(signal_number)

    def node(self, number: int) -> BrokerNode:
        """Return a node by its number, from 1."""
        if not 1 <= number <= len(self.nodes):
            raise ConfigurationError(f"there is no node {number}; there are 1 to {len(self.nodes)}")
        return self.nodes[number - 1]

    def status(self) -> list[dict[str, Any]]:
        """Describe each node: its number, address, process id, state and log."""
        self._refresh()
        described = []
        for node, ports in zip(self.nodes, self.saved_state.ports, strict=True):
            alive = node.is_alive()
            described.append(
                {
                    "node": node.number,
                    "address": f"{HOST}:{ports.client}",
                    "state": "running" if alive else "stopped",
                    "pid": node.process.pid if node.process and alive else None,
                    "log": str(node.log),
                }
            )
        return described

    def logs(self, number: int = 1) -> Path:
        """Return the path of the log of a node."""
        return self.node(number).log

    def _refresh(self) -> None:
        """Read the saved state again, which another process may have changed."""
        found = SavedState.load(self.directory)
        if found is None:
            return
        mine = self.saved_state
        if (len(found.ports), found.security) != (len(mine.ports), mine.security) or (
            self._fixed_port not in (0, found.ports[0].client)
        ):
            raise ConfigurationError(
                f"the cluster in {self.directory} is another one: it has {_describe(found)}; "
                "take another directory or remove it"
            )
        found.properties |= mine.properties
        self.saved_state = found
        for node in self.nodes:
            node.process = found.processes.get(node.number)

    def _configure(self) -> None:
        state, security = self.saved_state, self.saved_state.security
        for ports in state.ports:
            if not is_free(ports.client):
                raise TransportUnavailable(
                    f"port {ports.client} of {HOST} is taken by another program; choose another port"
                )
        # First, because the files below are valid with this id and these passwords only.
        state.save(self.directory)
        if security.tls:
            self._authority.create()
            self._authority.sign("server", security.hosts)
            for user in (ADMIN, CLIENT):
                self._authority.sign(user)
            pair = self._authority.key_of("server"), self._authority.certificate_of("server")
            write_private(self._authority.keystore, "".join(path.read_text() for path in pair))
        protection = security_properties(security, state.passwords, self._authority)
        for node in self.nodes:
            own = properties(node.number, node.data, state.ports, secured=not security.open)
            node.configure(own | protection | state.properties)
        self._format(state)
        for user in (ADMIN, CLIENT):
            write_private(self.ini(user), ini(self.url, self.options(user)))

    def _format(self, state: SavedState) -> None:
        checkpoint = self._runtime.bootstrap_checkpoint
        arguments = scram_arguments(state.security, state.passwords)
        if checkpoint and not arguments and has_usual_format(state.properties):
            for node in self.nodes:
                node.format_from(checkpoint, state.cluster_id)
            return
        # In parallel, because most of it is the start of a JVM.
        with futures.ThreadPoolExecutor(len(self.nodes)) as pool:
            formats = [
                pool.submit(node.format, self._runtime, state.cluster_id, arguments) for node in self.nodes
            ]
            for each in formats:
                each.result()

    def _launch(self, nodes: list[BrokerNode], timeout: float) -> None:
        runtime = self._runtime
        deadline = time.monotonic() + timeout
        try:
            for node in nodes:
                self.saved_state.processes[node.number] = node.launch(runtime)
            # Before the wait, so that the processes are known even if this one is killed now.
            self.saved_state.save(self.directory)
            for node in nodes:
                node.wait_ready(deadline)
        except BaseException:
            _end(nodes, STOP_TIMEOUT_SECONDS)
            raise

    @functools.cached_property
    def _runtime(self) -> Runtime:
        fetched = jars.fetch(jars.KAFKA, java_option=self.java)
        found = java.find(java.KAFKA, self.java)
        return fast_start.prepare(Runtime(found.path, ":".join(map(str, fetched))))

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


def _end(nodes: list[BrokerNode], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    # All at once: one after the other, the last node would wait for a quorum.
    for node in nodes:
        node.kill(signal.SIGTERM)
    for node in nodes:
        node.end(max(0.0, deadline - time.monotonic()))


def _describe(state: SavedState) -> str:
    count = len(state.ports)
    return f"{count} node{'s' * (count > 1)} from port {state.ports[0].client} on, {state.security}"
