"""Faults of the network between clients and brokers, and among brokers."""

import time

from faults.fault import Fault
from faults.nemesis import brokers
from faults.processes import SESSION_SECONDS
from faults.run import Run
from faults.topology import namespaces
from faults.topology.proxy import LinkQuality, Proxy
from faults.topology.separate_brokers import SeparateBrokers

CUT_SECONDS = SESSION_SECONDS + 4.0
# Twice this delay for each of four packets is less than a session timeout.
SLOW_LINK = LinkQuality(delay=0.02, loss=0.05)


def client_cut_off(run: Run) -> None:
    """Drop all traffic between clients and brokers; brokers reach each other."""
    with run.disruption(4), namespaces.packets_dropped(*client_ports(run)):
        time.sleep(CUT_SECONDS)


def broker_cut_off(run: Run) -> None:
    """Separate a leader from the other brokers; clients reach all of them."""
    cut = run.cluster.saved_state.ports[brokers.leader(run)[0] - 1]
    with run.disruption(4), namespaces.packets_dropped(*_both([cut.controller, cut.internal])):
        time.sleep(2 * CUT_SECONDS)


def brokers_alone(run: Run) -> None:
    """Separate all brokers from each other; clients reach all of them."""
    ports = [port for each in run.cluster.saved_state.ports for port in (each.controller, each.internal)]
    with run.disruption(4), namespaces.packets_dropped(*_both(ports)):
        time.sleep(2 * CUT_SECONDS)


def leader_alone(run: Run) -> None:
    """Separate a leader from the two others by their own namespaces; clients reach all of them.

    The two elect a new leader. The old one still believes that it leads: what clients send to it
    waits until it learns of the new one.
    """
    number = brokers.leader(run)[0]
    with run.disruption(4), separate_brokers(run).isolated(number):
        time.sleep(2 * CUT_SECONDS)


def one_way_loss(run: Run) -> None:
    """Drop the answers of a leader to its clients; their requests arrive."""
    number = brokers.leader(run)[0]
    with (
        run.disruption(4),
        namespaces.packets_dropped(f"sport {run.cluster.saved_state.ports[number - 1].client}"),
    ):
        time.sleep(CUT_SECONDS)


def link_cut(run: Run) -> None:
    with run.disruption(4):
        proxy(run).cut()
        time.sleep(CUT_SECONDS)
        proxy(run).repair()


def half_open(run: Run) -> None:
    with run.disruption(4):
        proxy(run).half_open()


def delay_and_loss(run: Run) -> None:
    with run.disruption():
        proxy(run).quality = SLOW_LINK
        time.sleep(CUT_SECONDS)
        run.wait_for_progress()
        proxy(run).repair()


def name_gone(run: Run) -> None:
    """Make the broker's name unknown while clients have to connect again."""
    with run.disruption(4), namespaces.broker_name_unknown():
        proxy(run).cut()
        proxy(run).repair()
        time.sleep(CUT_SECONDS)


def separate_brokers(run: Run) -> SeparateBrokers:
    assert run.topology.separate_brokers is not None
    return run.topology.separate_brokers


def proxy(run: Run) -> Proxy:
    assert run.topology.proxy is not None
    return run.topology.proxy


def client_ports(run: Run) -> list[str]:
    return _both([each.client for each in run.cluster.saved_state.ports])


def _both(ports: list[int]) -> list[str]:
    return [f"{way} {port}" for port in ports for way in ("dport", "sport")]


NAMESPACE = "a network namespace"
THREE = ("three-brokers",)
FAULTS = [
    Fault(
        "client-cut-off", "clients are cut off from the brokers", client_cut_off, THREE, requires=NAMESPACE
    ),
    Fault(
        "brokers-cut-apart",
        "no other broker reaches a leader",
        broker_cut_off,
        THREE,
        requires=NAMESPACE,
    ),
    Fault("brokers-alone", "no broker reaches another", brokers_alone, THREE, requires=NAMESPACE),
    Fault(
        "leader-alone",
        "a leader and the others are separated",
        leader_alone,
        ("separate-brokers",),
        requires=NAMESPACE,
    ),
    Fault("one-way-loss", "the answers of a leader are lost", one_way_loss, THREE, requires=NAMESPACE),
    Fault(
        "link-cut", "a proxy before the broker closes and refuses connections", link_cut, ("proxied-broker",)
    ),
    Fault(
        "name-gone",
        "the name of the broker is unknown",
        name_gone,
        ("proxied-broker",),
        requires=NAMESPACE,
    ),
    Fault("half-open", "clients keep connections that the broker has closed", half_open, ("proxied-broker",)),
    Fault(
        "delay-and-loss", "20 ms each way, 5 % of the segments come late", delay_and_loss, ("proxied-broker",)
    ),
]
