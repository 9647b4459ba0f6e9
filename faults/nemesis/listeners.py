"""What happens to listeners and by their endpoints."""

import signal
import time

from faults.harness import SESSION, until
from faults.run import MEMBERS, Fault, Play

EITHER = ("three", "sqlite")


def listener_killed(play: Play) -> None:
    """In the middle of a batch: at its 30th it is busy for longer than it has to live."""
    victim = play.listen(nap=60.0, nap_every=30)
    with play.hit():
        victim.await_count("napping", 1)
        victim.kill()
        play.listeners.remove(victim)


def listener_stopped(play: Play) -> None:
    sleeper, other = play.listeners[:2]
    with play.hit():
        play.scene.pause(sleeper)
        time.sleep(SESSION + 3.0)
        before = other.count("handled")
        other.await_count("handled", before + 1)
        sleeper.send(signal.SIGCONT)


def listener_overtaken(play: Play) -> None:
    """Stop one in the middle of a batch until others had its share and left; what it commits then is old."""
    guest = play.listen(nap=1.5, nap_every=30)
    with play.hit(4):
        guest.await_count("handled", 29)
        play.scene.pause(guest)
        time.sleep(SESSION + 6.0)
        for each in [each for each in play.listeners if each is not guest]:
            play.retire(each)
        # Alone it goes on from the positions that it finds: its own old ones, if it could write them.
        guest.send(signal.SIGCONT)
        play.flow()
        for _ in range(MEMBERS):
            play.listen()
        play.retire(guest)


def slow_endpoint(play: Play) -> None:
    """Over the whole load an endpoint takes longer than the poll interval, now and then."""
    play.allow()
    slow = play.listen(nap=SESSION + 2.0, nap_every=50)
    slow.await_count("handled", 60)
    play.retire(slow)
    play.mark()


def members_come_and_go(play: Play) -> None:
    with play.hit(4):
        guest = play.listen()
        time.sleep(1.5)
        play.retire(guest)


def goes_on(play: Play) -> None:
    """What is wrong is wrong all the time, so there is nothing to strike."""
    play.mark()
    before = play.handled()
    until(lambda: play.handled() > before + 300, "the listeners to go on")


RAISING = {"refuse_share": 0.02, "raises": True}
STORM = {"refuse": 2, "times": 3}

FAULTS = [
    Fault("listener-killed", "SIGKILL in the middle of a batch", listener_killed, EITHER),
    Fault("listener-stopped", "SIGSTOP for longer than a session, then SIGCONT", listener_stopped, EITHER),
    Fault("listener-overtaken", "SIGSTOP in a batch until others left", listener_overtaken, EITHER),
    Fault(
        "slow-endpoint",
        "an endpoint that now and then takes longer than the poll interval",
        slow_endpoint,
        EITHER,
        driver={"poll_interval": SESSION},
    ),
    Fault("members-come-and-go", "a member joins and leaves every few seconds", members_come_and_go, EITHER),
    Fault("poison", "1 % is no notification", goes_on, EITHER, publish={"poison": 100}),
    Fault("endpoint-raises", "endpoints raise at random", goes_on, EITHER, listen=RAISING),
    Fault("requeue-storm", "half is refused, again and again", goes_on, EITHER, listen=STORM),
]
