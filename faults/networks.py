"""What happens to the network between clients and brokers, and among brokers."""

import time

from faults import brokers, network
from faults.play import Fault, Play
from faults.proxy import Proxy, Weather
from faults.scene import SESSION

CUT = SESSION + 4.0
# Twice this and the four phases of an answer are within a session.
SLOW = Weather(delay=0.02, loss=0.05)


def client_cut_off(play: Play) -> None:
    """Nothing from clients reaches a broker, and nothing comes back; brokers see each other."""
    ports = [each.client for each in play.cluster.layout.ports]
    with play.hit(4), network.dropped(*_both(ports)):
        time.sleep(CUT)


def broker_cut_off(play: Play) -> None:
    """The other brokers cannot reach a leader, nor fetch from it; clients still reach all of them."""
    cut = play.cluster.layout.ports[brokers.leader(play)[0] - 1]
    with play.hit(4), network.dropped(*_both([cut.controller, cut.internal])):
        time.sleep(2 * CUT)


def one_way_loss(play: Play) -> None:
    """What a leader answers its clients is lost, what they say arrives."""
    number = brokers.leader(play)[0]
    with play.hit(4), network.dropped(f"sport {play.cluster.layout.ports[number - 1].client}"):
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
    proxy(play).weather = SLOW
    play.allow(4)
    play.mark()


def proxy(play: Play) -> Proxy:
    assert play.place.proxy is not None
    return play.place.proxy


def _both(ports: list[int]) -> list[str]:
    return [f"{way} {port}" for port in ports for way in ("dport", "sport")]


NAMESPACE = "a network namespace"
THREE = ("three",)
FAULTS = [
    Fault("client-cut-off", "clients are cut off from the brokers", client_cut_off, THREE, needs=NAMESPACE),
    Fault("brokers-cut-apart", "no other broker reaches a leader", broker_cut_off, THREE, needs=NAMESPACE),
    Fault("one-way-loss", "what a leader answers is lost", one_way_loss, THREE, needs=NAMESPACE),
    Fault("link-cut", "a proxy before the broker ends and refuses connections", link_cut, ("proxied",)),
    Fault("half-open", "clients keep connections that the broker has given up", half_open, ("proxied",)),
    Fault("delay-and-loss", "20 ms each way, 5 % of the segments come late", delay_and_loss, ("proxied",)),
]
