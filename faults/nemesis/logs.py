"""Faults of an SQLite log and of the processes that share it."""

import sqlite3
import time

from faults.fault import Fault
from faults.processes import WorkloadProcess, wait_until
from faults.run import Run

SQLITE = ("sqlite",)


def check_integrity(run: Run) -> None:
    """Run SQLite's own check of the file."""
    log = run.case.bus.log
    assert log is not None
    connection = sqlite3.connect(f"file:{log}?mode=ro", uri=True, timeout=60.0)
    try:
        found = connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()
    assert found == [("ok",)], f"integrity_check: {found[:3]}"


def writers_killed(run: Run) -> None:
    """Kill writers at random points."""
    for name, mode in (("waiting", "chunk"), ("streaming", "stream")):
        run.publishers[name].kill()
        check_integrity(run)
        run.publish(name, mode)
    run.mark_repaired()


def readers_killed(run: Run) -> None:
    victim = run.listeners.pop(0)
    with run.disruption():
        victim.kill()
        check_integrity(run)
        run.listen()


def log_locked(run: Run) -> None:
    """Hold the lock of the log for seconds."""
    with run.disruption(), run.topology.hung(run.case.bus):
        time.sleep(4.0)


def without_retries(run: Run) -> None:
    """A publisher that waits gets each failure."""
    waiting = run.publishers["waiting"]
    with run.disruption(), run.topology.hung(run.case.bus):
        # One chunk may have been written before; the chunk after it fails.
        goal = _settled(waiting) + 40
        wait_until(lambda: _settled(waiting) >= goal, "the failures")


def _settled(publisher: WorkloadProcess) -> int:
    return publisher.count("failed") + publisher.count("acknowledged")


def eight_processes(run: Run) -> None:
    """Add two publishers and two listeners, and kill one of each."""
    names = [f"extra-{len(run.case.publishers) + n}" for n in range(2)]
    for name in names:
        run.publish(name, "chunk")
    with run.disruption(6):
        extras = [run.listen() for _ in range(2)]
        run.wait_for_progress()
        run.publishers[names[0]].kill()
        run.listeners.remove(extras[0])
        extras[0].kill()
    check_integrity(run)
    del run.publishers[names[0]]
    run.stop(run.publishers[names[1]])
    run.stop(extras[1])


def disk_full(run: Run) -> None:
    disk = run.topology.disk
    assert disk is not None
    waiting = run.publishers["waiting"]
    with run.disruption(), disk.full():
        wait_until(lambda: "disk is full" in waiting.stderr_tail(), "the publisher's message")
        time.sleep(2.0)


FAULTS = [
    Fault("writers-killed", "SIGKILL of writers at random points; integrity check", writers_killed, SQLITE),
    Fault("readers-killed", "SIGKILL of readers at random points; integrity check", readers_killed, SQLITE),
    Fault("log-locked", "another program holds the lock of the log for 4 s", log_locked, SQLITE),
    Fault(
        "without-retries",
        "the log is locked for longer than a publisher without retries waits",
        without_retries,
        SQLITE,
        publisher={"options": {"notifications.retry": 0}},
        url_options={"busy_timeout": 1.0},
    ),
    Fault(
        "eight-processes",
        "eight processes on one log, some are killed; integrity check",
        eight_processes,
        SQLITE,
    ),
    Fault("disk-full", "the disk under the log is full for a while", disk_full, ("small-disk",)),
]
