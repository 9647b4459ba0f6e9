"""The state of a local cluster that is saved between processes: ``cluster.json`` in its directory."""

import base64
import dataclasses
import json
import random
import socket
import uuid
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from notifier_kafka.errors import ConfigurationError, TransportUnavailable

from .broker_users import Security, new_passwords, write_private
from .listener_properties import HOST, Ports
from .process import Process

SIZES = (1, 3)

# Below the ports that the kernel gives to outgoing connections: such a connection, for example a
# client's retry, could take the port of a node that is down.
_PORTS = range(20000, 32000)
_FILE = "cluster.json"


@dataclass
class SavedState:
    """The description of a cluster, its passwords, and the processes of its nodes."""

    cluster_id: str
    ports: list[Ports]
    security: Security
    passwords: dict[str, str] = field(repr=False)
    properties: dict[str, str]
    processes: dict[int, Process] = field(default_factory=dict)

    @classmethod
    def new(cls, nodes: int, port: int, security: Security, properties: Mapping[str, str]) -> "SavedState":
        """Describe a new cluster whose first broker listens at ``port``; 0 takes free ports."""
        if nodes not in SIZES:
            raise ConfigurationError(f"a local cluster has 1 or 3 nodes, not {nodes}")
        clients = [port + n for n in range(nodes)] if port else _free_ports(nodes)
        others = _free_ports(2 * nodes, clients)
        ports = list(map(Ports, clients, others[:nodes], others[nodes:]))
        return cls(random_id(), ports, security, new_passwords(), dict(properties))

    @classmethod
    def load(cls, directory: Path) -> "SavedState | None":
        """Read the state in a directory; return None when there is no cluster."""
        try:
            found = json.loads((directory / _FILE).read_text("utf-8"))
            return cls(
                found["cluster_id"],
                [Ports(*ports) for ports in found["ports"]],
                Security(**found["security"] | {"hosts": tuple(found["security"]["hosts"])}),
                found["passwords"],
                found["properties"],
                {int(number): Process(**process) for number, process in found["processes"].items()},
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigurationError(
                f"{directory / _FILE} cannot be read: {type(error).__name__}: {error}; "
                "stop its brokers, remove the directory and start again"
            ) from error

    def save(self, directory: Path) -> None:
        """Write the state in one step: a reader never sees half of it."""
        beside = directory / f"{_FILE}.new"
        write_private(beside, json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        beside.replace(directory / _FILE)


def _free_ports(count: int, besides: Container[int] = ()) -> list[int]:
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        if port not in besides and is_free(port):
            found.append(port)
    raise TransportUnavailable(f"there are no {count} free ports from {_PORTS.start} to {_PORTS.stop}")


def is_free(port: int) -> bool:
    """Tell whether a server can listen at a port of this machine's loopback interface."""
    with socket.socket() as probe:
        # The broker sets it too: a port with lingering connections of a stopped broker counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def random_id() -> str:
    """Return a random id in Kafka's spelling, but never one that its tools would take for an option."""
    while (drawn := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return drawn
