"""The properties of a node of the local cluster: roles, network listeners, authentication."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .broker_users import ADMIN, BROKER, CLIENT, PLAIN_LOGIN, SCRAM_LOGIN, Security
from .certificates import Authority

HOST = "127.0.0.1"


class Ports(NamedTuple):
    """The ports of a node: for clients, for controllers, and for brokers when clients are secured."""

    client: int
    controller: int
    internal: int


def properties(number: int, data: Path, ports: Sequence[Ports], *, secured: bool) -> dict[str, str]:
    """Build the properties that every cluster needs, for the node ``number`` (from 1)."""
    mine = ports[number - 1]
    listeners = f"CLIENT://{HOST}:{mine.client}"
    if secured:
        listeners += f",INTERNAL://{HOST}:{mine.internal}"
    voters = ",".join(f"{n}@{HOST}:{each.controller}" for n, each in enumerate(ports, 1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(number),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listeners},CONTROLLER://{HOST}:{mine.controller}",
        "advertised.listeners": listeners,
        "log.dirs": str(data),
        **_replication(len(ports)),
        **_timing(),
        # By default 128 MB, which a broker allocates when it starts.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def _replication(nodes: int) -> dict[str, str]:
    replicas, in_sync = str(nodes), str(min(2, nodes))
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "10",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "10",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _timing() -> dict[str, str]:
    return {
        # By default the first member of a group waits 3 s for others.
        "group.initial.rebalance.delay.ms": "0",
        # A dead leader is replaced within 2.5 to 5 s, not 9 to 12 s.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
        "controller.quorum.election.timeout.ms": "1000",
        "controller.quorum.fetch.timeout.ms": "2000",
        "replica.lag.time.max.ms": "5000",
        # In the classic protocol the client chooses within these; with KIP-848 the broker decides.
        "group.min.session.timeout.ms": "1000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.heartbeat.interval.ms": "1000",
    }


def security_properties(
    security: Security, passwords: Mapping[str, str], authority: Authority
) -> dict[str, str]:
    """Build the properties for encryption, logins and ACLs of each network listener."""
    if security.open:
        return {
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
        }
    return {
        "listener.security.protocol.map": f"CLIENT:{security.protocol},"
        "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        **_among_brokers(passwords[BROKER]),
        **(_tls(security, authority) if security.tls else {}),
        **(_sasl(security, passwords) if security.sasl else {}),
        **(_acls() if security.acls else {}),
    }


def _among_brokers(password: str) -> dict[str, str]:
    # Brokers have a password too: an open listener for them would let any client bypass the
    # secured one. PLAIN, because controllers have no SCRAM users before there is a quorum; the
    # connections never leave the machine.
    login = f'{PLAIN_LOGIN} required username="{BROKER}" password="{password}" user_{BROKER}="{password}";'
    found = {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for listener in ("internal", "controller"):
        found[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "PLAIN"
        found[f"listener.name.{listener}.plain.sasl.jaas.config"] = login
    return found


def _tls(security: Security, authority: Authority) -> dict[str, str]:
    # Without a login, the certificate identifies the client.
    required = security.acls and not security.sasl
    return {
        "listener.name.client.ssl.keystore.type": "PEM",
        "listener.name.client.ssl.keystore.location": str(authority.keystore),
        "listener.name.client.ssl.truststore.type": "PEM",
        "listener.name.client.ssl.truststore.location": str(authority.certificate),
        "listener.name.client.ssl.client.auth": "required" if required else "requested",
        "listener.name.client.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


def _sasl(security: Security, passwords: Mapping[str, str]) -> dict[str, str]:
    found = {"listener.name.client.sasl.enabled.mechanisms": ",".join(security.mechanisms)}
    users = " ".join(f'user_{user}="{passwords[user]}"' for user in (ADMIN, CLIENT))
    for mechanism in security.mechanisms:
        # SCRAM users are in the metadata of the cluster.
        login = f"{PLAIN_LOGIN} required {users};" if mechanism == "PLAIN" else f"{SCRAM_LOGIN} required;"
        found[f"listener.name.client.{mechanism.lower()}.sasl.jaas.config"] = login
    return found


def _acls() -> dict[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{BROKER};User:{ADMIN}",
    }
