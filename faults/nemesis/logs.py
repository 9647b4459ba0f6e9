"""What happens to an SQLite log and to the processes that share it."""

import sqlite3
import time

from faults.harness import Actor, until
from faults.run import Fault, Play

SQLITE = ("sqlite",)


def intact(play: Play) -> None:
    """Have SQLite itself look through the file."""
    log = play.scene.bus.log
    assert log is not None
    connection = sqlite3.connect(f"file:{log}?mode=ro", uri=True, timeout=60.0)
    try:
        found = connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()
    assert found == [("ok",)], f"integrity_check: {found[:3]}"


def writers_killed(play: Play) -> None:
    """At random points: a kill hits wherever the writer happens to be."""
    for name, how in (("waits", "chunk"), ("streams", "stream")):
        play.publishers[name].kill()
        intact(play)
        play.publish(name, how)
    play.mark()


def readers_killed(play: Play) -> None:
    victim = play.listeners.pop(0)
    with play.hit():
        victim.kill()
        intact(play)
        play.listen()


def log_locked(play: Play) -> None:
    """Somebody else keeps the log's lock for seconds."""
    with play.hit(), play.place.hung(play.scene.bus):
        time.sleep(4.0)


def without_retries(play: Play) -> None:
    """Each failure is told to whoever waits."""
    waits = play.publishers["waits"]
    with play.hit(), play.place.hung(play.scene.bus):
        # A chunk may have been written before; whatever is said of the one after it is said of failures.
        goal = _settled(waits) + 40
        until(lambda: _settled(waits) >= goal, "the failures to be told")


def _settled(publisher: Actor) -> int:
    return publisher.count("failed") + publisher.count("acknowledged")


def eight_processes(play: Play) -> None:
    """Beside the two publishers and two listeners two more of each; one of each is killed."""
    names = [f"extra-{len(play.scene.publishers) + n}" for n in range(2)]
    for name in names:
        play.publish(name, "chunk")
    with play.hit(6):
        guests = [play.listen() for _ in range(2)]
        play.flow()
        play.publishers[names[0]].kill()
        play.listeners.remove(guests[0])
        guests[0].kill()
    intact(play)
    del play.publishers[names[0]]
    play.retire(play.publishers[names[1]])
    play.retire(guests[1])


def disk_full(play: Play) -> None:
    disk = play.place.disk
    assert disk is not None
    waits = play.publishers["waits"]
    with play.hit(), disk.full():
        until(lambda: "disk is full" in waits.said(), "the publisher to notice")
        time.sleep(2.0)  # it says so once a while


FAULTS = [
    Fault("writers-killed", "SIGKILL of writers at random points; integrity check", writers_killed, SQLITE),
    Fault("readers-killed", "SIGKILL of readers at random points; integrity check", readers_killed, SQLITE),
    Fault("log-locked", "another program holds the log's lock for 4 s", log_locked, SQLITE),
    Fault(
        "without-retries",
        "the log is locked for longer than who does not try again waits",
        without_retries,
        SQLITE,
        publish={"options": {"notifications.retry": 0}},
        driver={"busy_timeout": 1.0},
    ),
    Fault(
        "eight-processes",
        "eight processes on one log, some are killed; integrity check",
        eight_processes,
        SQLITE,
    ),
    Fault("disk-full", "the disk under the log is full for a while", disk_full, ("small-disk",)),
]
