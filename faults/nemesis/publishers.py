"""What happens to publishers."""

import time
from typing import Any

from faults.run import Fault, Play
from faults.topology.clock import BACK, FORWARD
from faults.topology.small_disk import mounted

EITHER = ("three", "sqlite")
FLOOD: dict[str, Any] = {"rate": 0.0, "padding": 2_000}


def publisher_killed(play: Play) -> None:
    for name, how in (("waits", "chunk"), ("streams", "stream")):
        play.publishers[name].kill()
        play.publish(name, how)
    play.mark()


def publisher_forked(play: Play) -> None:
    """Guests fork half-way, with the notifier made before that."""
    for how in ("chunk", "stream"):
        name = f"forks-{len(play.scene.publishers)}"
        play.publish(name, how, count=200, fork_at=100).await_end()
        del play.publishers[name]
    play.mark()


def terminated_while_flushing(play: Play) -> None:
    name = f"ends-{len(play.scene.publishers)}"
    guest = play.publish(name, "stream", rate=0.0)
    guest.await_count("accepted", 2_000)
    play.retire(guest)
    play.mark()


def outbox_full(play: Play) -> None:
    """What finds no room is told to the program."""
    streams = play.publishers["streams"]
    with play.hit(4), play.place.hung(play.scene.bus):
        streams.await_count("failed", streams.count("failed") + 50)


def spool_disk_full(play: Play) -> None:
    """A guest whose spool is on a small disk goes on without a bus until that is full."""
    name = f"fills-{len(play.scene.publishers)}"
    place = play.directory / name
    options = {
        "notifications.spool_dir": str(place),
        "notifications.spool_after": 0.5,
        "notifications.outbox_records": 500,
    }
    with mounted(place) as largest:
        with play.hit(4), play.place.hung(play.scene.bus):
            guest = play.publish(name, "stream", largest_file=largest, options=options, **FLOOD)
            guest.await_count("failed", 50)
        play.retire(guest)
        play.send_spool(place)


def two_on_one_spool(play: Play) -> None:
    """Both spool into one directory; one is killed, and its next life or the other sends what it left."""
    streams = play.publishers["streams"]
    # The one that waits for each is never spooled.
    other = play.publishers.get("streams-too") or play.publish("streams-too", "stream")
    other.await_count("accepted", 1)
    with play.hit(), play.place.hung(play.scene.bus):
        before, beside = streams.count("accepted"), other.count("accepted")
        streams.await_count("accepted", before + int(play.load.rate))
        other.await_count("accepted", beside + int(play.load.rate))
        time.sleep(1.5)  # what the client has is copied to the disk after spool_after
        streams.kill()
        play.repeat(streams.count("accepted") - before)
        play.publish("streams", "stream")


def clock_stepped(play: Play) -> None:
    with play.hit(1):
        for step in (FORWARD, BACK, BACK, FORWARD):
            for each in (play.publishers["streams"], play.publishers["waits"], play.listeners[0]):
                each.send(step)
            play.flow()


FAULTS = [
    Fault("publisher-killed", "SIGKILL of both publishers; each starts again", publisher_killed, EITHER),
    Fault("publisher-forked", "fork of publishers, with the notifier made before", publisher_forked, EITHER),
    Fault("publisher-terminated", "SIGTERM with thousands unsent", terminated_while_flushing, EITHER),
    Fault(
        "outbox-full",
        "the bus hangs until an outbox of 500 is full",
        outbox_full,
        EITHER,
        publish={"options": {"notifications.outbox_records": 500}},
    ),
    Fault("spool-disk-full", "the bus hangs until a spool's small disk is full", spool_disk_full, EITHER),
    Fault(
        "two-on-one-spool",
        "two processes on one spool while the bus hangs, one is killed",
        two_on_one_spool,
        EITHER,
        publish={"spool": True},
    ),
    Fault("clock-stepped", "clocks stepped an hour, both ways", clock_stepped, EITHER),
]
