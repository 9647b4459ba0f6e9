"""Faults of listeners and of their endpoints."""

import signal
import time

from faults.fault import Fault
from faults.processes import SESSION_SECONDS, wait_until
from faults.run import MEMBER_COUNT, Run

EITHER = ("three-brokers", "sqlite")


def listener_killed(run: Run) -> None:
    """Kill one in the middle of a batch: its 30th notification takes longer than it has to live."""
    victim = run.listen(nap_seconds=60.0, nap_every=30)
    with run.disruption():
        victim.wait_for("napping", 1)
        victim.kill()
        run.listeners.remove(victim)


def listener_stopped(run: Run) -> None:
    stopped, other = run.listeners[:2]
    with run.disruption():
        run.case.pause(stopped)
        time.sleep(SESSION_SECONDS + 3.0)
        before = other.count("handled")
        other.wait_for("handled", before + 1)
        stopped.send_signal(signal.SIGCONT)


def listener_overtaken(run: Run) -> None:
    """Stop one in the middle of a batch until others took over and left; its own positions are old then."""
    extra = run.listen(nap_seconds=1.5, nap_every=30)
    with run.disruption(4):
        extra.wait_for("handled", 29)
        run.case.pause(extra)
        time.sleep(SESSION_SECONDS + 6.0)
        for each in [each for each in run.listeners if each is not extra]:
            run.stop(each)
        # Alone now, it continues from the committed positions; its own old ones must not be among them.
        extra.send_signal(signal.SIGCONT)
        run.wait_for_progress()
        for _ in range(MEMBER_COUNT):
            run.listen()
        run.stop(extra)


def slow_endpoint(run: Run) -> None:
    """An endpoint that takes longer than the poll interval now and then."""
    run.allow_repeats()
    slow = run.listen(nap_seconds=SESSION_SECONDS + 2.0, nap_every=50)
    slow.wait_for("handled", 60)
    run.stop(slow)
    run.mark_repaired()


def members_come_and_go(run: Run) -> None:
    with run.disruption(4):
        extra = run.listen()
        time.sleep(1.5)
        run.stop(extra)


def keep_running(run: Run) -> None:
    """Inject nothing: the fault is in the settings of the processes."""
    run.mark_repaired()
    before = run.handled_count()
    wait_until(lambda: run.handled_count() > before + 300, "progress of the listeners")


RANDOM_ERRORS = {"refuse_share": 0.02, "raises": True}
STORM = {"refuse_every": 2, "refusals": 3}

FAULTS = [
    Fault("listener-killed", "SIGKILL in the middle of a batch", listener_killed, EITHER),
    Fault("listener-stopped", "SIGSTOP for longer than a session, then SIGCONT", listener_stopped, EITHER),
    Fault(
        "listener-overtaken", "SIGSTOP in a batch until the other members left", listener_overtaken, EITHER
    ),
    Fault(
        "slow-endpoint",
        "an endpoint takes longer than the poll interval now and then",
        slow_endpoint,
        EITHER,
        url_options={"poll_interval": SESSION_SECONDS},
    ),
    Fault("members-come-and-go", "a member joins and leaves every few seconds", members_come_and_go, EITHER),
    Fault("poison", "1 % are poison messages", keep_running, EITHER, publisher={"poison_every": 100}),
    Fault("endpoint-raises", "endpoints raise at random", keep_running, EITHER, listener=RANDOM_ERRORS),
    Fault("requeue-storm", "half of all is refused several times", keep_running, EITHER, listener=STORM),
]
