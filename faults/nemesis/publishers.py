"""Faults of publishers."""

import time
from typing import Any

from faults.fault import Fault
from faults.run import Run
from faults.topology.clock import STEP_BACK, STEP_FORWARD
from faults.topology.small_disk import mounted

EITHER = ("three-brokers", "sqlite")
FLOOD: dict[str, Any] = {"rate": 0.0, "padding": 2_000}


def publisher_killed(run: Run) -> None:
    for name, mode in (("waiting", "chunk"), ("streaming", "stream")):
        run.publishers[name].kill()
        run.publish(name, mode)
    run.mark_repaired()


def publisher_forked(run: Run) -> None:
    """Start publishers that fork half-way, with the notifier made before the fork."""
    for mode in ("chunk", "stream"):
        name = f"forks-{len(run.case.publishers)}"
        run.publish(name, mode, count=200, fork_at=100).wait_for_exit()
        del run.publishers[name]
    run.mark_repaired()


def terminated_while_flushing(run: Run) -> None:
    name = f"ends-{len(run.case.publishers)}"
    extra = run.publish(name, "stream", rate=0.0)
    extra.wait_for("accepted", 2_000)
    run.stop(extra)
    run.mark_repaired()


def outbox_full(run: Run) -> None:
    """Make the bus hang until publishing fails because the outbox is full."""
    streams = run.publishers["streaming"]
    with run.disruption(4), run.topology.hung(run.case.bus):
        streams.wait_for("failed", streams.count("failed") + 50)


def spool_disk_full(run: Run) -> None:
    """Start a publisher whose spool is on a small disk, and make the bus hang until that is full."""
    name = f"fills-{len(run.case.publishers)}"
    directory = run.directory / name
    options = {
        "notifications.spool_dir": str(directory),
        "notifications.spool_after": 0.5,
        "notifications.outbox_records": 500,
    }
    with mounted(directory) as largest:
        with run.disruption(4), run.topology.hung(run.case.bus):
            extra = run.publish(name, "stream", max_file_bytes=largest, options=options, **FLOOD)
            extra.wait_for("failed", 50)
        run.stop(extra)
        run.flush_spool(directory)


def two_on_one_spool(run: Run) -> None:
    """Two publishers share a spool; one is killed, and it or the other sends what it left."""
    streams = run.publishers["streaming"]
    # The publisher that waits uses no spool.
    other = run.publishers.get("streaming-too") or run.publish("streaming-too", "stream")
    other.wait_for("accepted", 1)
    with run.disruption(), run.topology.hung(run.case.bus):
        before, beside = streams.count("accepted"), other.count("accepted")
        streams.wait_for("accepted", before + int(run.workload.rate))
        other.wait_for("accepted", beside + int(run.workload.rate))
        time.sleep(1.5)  # the spool gets what the client has after spool_after
        streams.kill()
        run.allow_spool_repeats(streams.count("accepted") - before)
        run.publish("streaming", "stream")


def clock_stepped(run: Run) -> None:
    with run.disruption(1):
        for step in (STEP_FORWARD, STEP_BACK, STEP_BACK, STEP_FORWARD):
            for each in (run.publishers["streaming"], run.publishers["waiting"], run.listeners[0]):
                each.send_signal(step)
            run.wait_for_progress()


FAULTS = [
    Fault("publisher-killed", "SIGKILL of both publishers; each starts again", publisher_killed, EITHER),
    Fault("publisher-forked", "fork of publishers, with the notifier made before", publisher_forked, EITHER),
    Fault("publisher-terminated", "SIGTERM with thousands unsent", terminated_while_flushing, EITHER),
    Fault(
        "outbox-full",
        "the bus hangs until an outbox of 500 is full",
        outbox_full,
        EITHER,
        publisher={"options": {"notifications.outbox_records": 500}},
    ),
    Fault("spool-disk-full", "the bus hangs until a spool's small disk is full", spool_disk_full, EITHER),
    Fault(
        "two-on-one-spool",
        "two processes on one spool while the bus hangs, one is killed",
        two_on_one_spool,
        EITHER,
        publisher={"spool": True},
    ),
    Fault("clock-stepped", "clocks are stepped by an hour, forward and back", clock_stepped, EITHER),
]
