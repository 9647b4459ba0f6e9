"""Several faults at once: a system may survive each of them alone and not all together."""

import signal
import time

from faults.fault import Fault
from faults.nemesis import brokers
from faults.nemesis.networks import CUT_SECONDS, NAMESPACE, client_ports
from faults.processes import SESSION_SECONDS
from faults.run import Run
from faults.topology import namespaces

THREE = ("three-brokers",)


def leader_listener_and_link(run: Run) -> None:
    """Stop a listener, kill a leader, and cut clients off from the other brokers."""
    (number,) = brokers.leader(run)
    stopped = run.listeners[0]
    with run.disruption(6):
        run.case.pause(stopped)
        with namespaces.packets_dropped(*client_ports(run)):
            run.cluster.kill_node(number)
            time.sleep(CUT_SECONDS)
        stopped.send_signal(signal.SIGCONT)
        run.mark_repaired()
        run.wait_for_progress()
    run.cluster.start()
    run.mark_repaired()


def publishers_and_two_brokers(run: Run) -> None:
    """Kill publishers and two of three brokers; publishers start again while the bus accepts nothing."""
    numbers = brokers.two(run)
    with run.disruption():
        for number in numbers:
            run.cluster.kill_node(number)
        before = run.publishers["streaming"].count("accepted")
        for name, mode in (("waiting", "chunk"), ("streaming", "stream")):
            run.publishers[name].kill()
            run.publish(name, mode)
        time.sleep(SESSION_SECONDS)
        run.cluster.start()
        run.wait_for_progress()
    run.allow_spool_repeats(run.publishers["streaming"].count("accepted") - before)


def members_and_rolling_restart(run: Run) -> None:
    """Add a member and kill one at each restart of a broker; endpoints refuse a tenth."""
    for number in brokers.ALL_NODES:
        with run.disruption(6):
            run.cluster.stop_node(number)
            extra = run.listen()
            victim = run.listeners.pop(0)
            victim.kill()
            run.cluster.start_node(number)
        run.wait_for_progress()
        assert extra.is_running()


FAULTS = [
    Fault(
        "leader-and-more",
        "a listener hangs, a leader is killed and clients are cut off, at once",
        leader_listener_and_link,
        THREE,
        requires=NAMESPACE,
    ),
    Fault(
        "publishers-and-two",
        "publishers with a spool are killed while two of three brokers are",
        publishers_and_two_brokers,
        THREE,
        publisher={"spool": True},
    ),
    Fault(
        "members-and-restart",
        "listeners join and are killed in a rolling restart, a tenth is refused",
        members_and_rolling_restart,
        THREE,
        listener={"refuse_every": 10},
    ),
]
