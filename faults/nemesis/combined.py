"""Faults that come at once: what survives each alone may not survive them together."""

import signal
import time

from faults.harness import SESSION
from faults.nemesis import brokers
from faults.nemesis.networks import CUT, NAMESPACE, client_ports
from faults.run import Fault, Play
from faults.topology import namespaces

THREE = ("three",)


def leader_listener_and_link(play: Play) -> None:
    """A listener hangs, its leader is killed, and nobody reaches the brokers that are left."""
    (number,) = brokers.leader(play)
    sleeper = play.listeners[0]
    with play.hit(6):
        play.scene.pause(sleeper)
        with namespaces.dropped(*client_ports(play)):
            play.cluster.kill_node(number)
            time.sleep(CUT)
        sleeper.send(signal.SIGCONT)
        play.mark()
        play.flow()
    play.cluster.start()
    play.mark()


def publishers_and_two_brokers(play: Play) -> None:
    """Publishers are killed while two of three brokers are, and begin again with a bus that takes nothing."""
    numbers = brokers.two(play)
    with play.hit():
        for number in numbers:
            play.cluster.kill_node(number)
        before = play.publishers["streams"].count("accepted")
        for name, how in (("waits", "chunk"), ("streams", "stream")):
            play.publishers[name].kill()
            play.publish(name, how)
        time.sleep(SESSION)
        play.cluster.start()
        play.flow()
    play.repeat(play.publishers["streams"].count("accepted") - before)


def members_and_rolling_restart(play: Play) -> None:
    """A member joins and one is killed at each restart, while a part is refused again and again."""
    for number in brokers.ALL:
        with play.hit(6):
            play.cluster.stop_node(number)
            guest = play.listen()
            victim = play.listeners.pop(0)
            victim.kill()
            play.cluster.start_node(number)
        play.flow()
        assert guest.running()


FAULTS = [
    Fault(
        "leader-and-more",
        "a listener hangs, a leader is killed and clients are cut off, at once",
        leader_listener_and_link,
        THREE,
        needs=NAMESPACE,
    ),
    Fault(
        "publishers-and-two",
        "publishers with a spool are killed while two of three brokers are",
        publishers_and_two_brokers,
        THREE,
        publish={"spool": True},
    ),
    Fault(
        "members-and-restart",
        "listeners join and are killed in a rolling restart, a tenth is refused",
        members_and_rolling_restart,
        THREE,
        listen={"refuse": 10},
    ),
]
