"""What happens to the network between clients and brokers, and among brokers."""

import time

from faults.harness import SESSION
from faults.nemesis import brokers
from faults.run import Fault, Play
from faults.topology import namespaces
from faults.topology.proxy import Proxy, Weather
from faults.topology.separate_brokers import Apart

CUT = SESSION + 4.0
# Twice this and the four phases of an answer are within a session.
SLOW = Weather(delay=0.02, loss=0.05)


def client_cut_off(play: Play) -> None:
    """Nothing from clients reaches a broker, and nothing comes back; brokers see each other."""
    with play.hit(4), namespaces.dropped(*client_ports(play)):
        time.sleep(CUT)


def broker_cut_off(play: Play) -> None:
    """The other brokers cannot reach a leader, nor fetch from it; clients still reach all of them."""
    cut = play.cluster.saved_state.ports[brokers.leader(play)[0] - 1]
    with play.hit(4), namespaces.dropped(*_both([cut.controller, cut.internal])):
        time.sleep(2 * CUT)


def brokers_alone(play: Play) -> None:
    """No broker reaches another, either way; clients reach all of them."""
    ports = [port for each in play.cluster.saved_state.ports for port in (each.controller, each.internal)]
    with play.hit(4), namespaces.dropped(*_both(ports)):
        time.sleep(2 * CUT)


def leader_alone(play: Play) -> None:
    """A leader and the two others do not reach each other, either way; clients reach all of them.

    The two choose a leader, while the old one still takes itself for it and answers clients so:
    what they send there waits until it hears of the new one.
    """
    number = brokers.leader(play)[0]
    with play.hit(4), apart(play).alone(number):
        time.sleep(2 * CUT)


def one_way_loss(play: Play) -> None:
    """What a leader answers its clients is lost, what they say arrives."""
    number = brokers.leader(play)[0]
    with play.hit(4), namespaces.dropped(f"sport {play.cluster.saved_state.ports[number - 1].client}"):
        time.sleep(CUT)


def link_cut(play: Play) -> None:
    with play.hit(4):
        proxy(play).cut()
        time.sleep(CUT)
        proxy(play).mend()


def half_open(play: Play) -> None:
    with play.hit(4):
        proxy(play).half_open()


def delay_and_loss(play: Play) -> None:
    with play.hit():
        proxy(play).weather = SLOW
        time.sleep(CUT)
        play.flow()
        proxy(play).mend()


def name_gone(play: Play) -> None:
    """The name of the broker is known to nobody, and connections have to be made anew."""
    with play.hit(4), namespaces.forgotten():
        proxy(play).cut()
        proxy(play).mend()
        time.sleep(CUT)


def apart(play: Play) -> Apart:
    assert play.place.apart is not None
    return play.place.apart


def proxy(play: Play) -> Proxy:
    assert play.place.proxy is not None
    return play.place.proxy


def client_ports(play: Play) -> list[str]:
    return _both([each.client for each in play.cluster.saved_state.ports])


def _both(ports: list[int]) -> list[str]:
    return [f"{way} {port}" for port in ports for way in ("dport", "sport")]


NAMESPACE = "a network namespace"
THREE = ("three",)
FAULTS = [
    Fault("client-cut-off", "clients are cut off from the brokers", client_cut_off, THREE, needs=NAMESPACE),
    Fault("brokers-cut-apart", "no other broker reaches a leader", broker_cut_off, THREE, needs=NAMESPACE),
    Fault("brokers-alone", "no broker reaches another", brokers_alone, THREE, needs=NAMESPACE),
    Fault("leader-alone", "a leader and the others are parted", leader_alone, ("apart",), needs=NAMESPACE),
    Fault("one-way-loss", "what a leader answers is lost", one_way_loss, THREE, needs=NAMESPACE),
    Fault("link-cut", "a proxy before the broker ends and refuses connections", link_cut, ("proxied",)),
    Fault("name-gone", "the broker's name is not found any more", name_gone, ("proxied",), needs=NAMESPACE),
    Fault("half-open", "clients keep connections that the broker has given up", half_open, ("proxied",)),
    Fault("delay-and-loss", "20 ms each way, 5 % of the segments come late", delay_and_loss, ("proxied",)),
]
