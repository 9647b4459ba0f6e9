"""Publishing to topics that a slow listener is far behind on, beside topics that nobody reads."""

import os
import signal
from contextlib import ExitStack

from benchmarks import measure, rows, workload
from benchmarks.environment import Scene
from benchmarks.peers import Child
from benchmarks.rows import Row, Target

CLIENT = "confluent-kafka"
NONE = "no backlog, no listener"


def backlog(scene: Scene) -> list[Row]:
    """Fill a topic, let a slow listener begin on it, and publish to it and to an empty one in turn."""
    size = scene.size
    group, name = "publish one by one", f"{size.backlog:,} unread, a slow listener"
    with ExitStack() as stack:
        bus = stack.enter_context(scene.bus(CLIENT))
        full, empty = scene.topic(), scene.topic()
        to_full, to_empty = workload.sender(bus, full), workload.sender(bus, empty)
        measure.say(f"publishing {size.backlog:,}")
        workload.send_many(to_full, size.backlog)
        slow = Child("slow_listener", f"{scene.cluster.url}/?client={CLIENT}", full)
        stack.enter_context(slow).ask("wait", 1)
        contestants = [
            # It runs in its own rounds only: nobody else's time is to be taken.
            measure.Contestant(
                name,
                lambda count: workload.one_by_one(to_full, count),
                lambda _count: os.kill(slow.pid, signal.SIGCONT),
                lambda: os.kill(slow.pid, signal.SIGSTOP),
            ),
            measure.Contestant(NONE, lambda count: workload.one_by_one(to_empty, count)),
        ]
        os.kill(slow.pid, signal.SIGSTOP)
        rates = measure.compare(contestants, size.each, size.rounds)
        group = f"backlog, {CLIENT}: {group}"
        return [rows.beside(group, rates, name, NONE, Target("≥", 0.95)), rows.alone(group, rates, NONE)]
