"""Publishing to a topic with a slow listener far behind, beside a topic without listeners."""

import os
import signal
from contextlib import ExitStack

from benchmarks import measure, rows, workload
from benchmarks.environment import Environment
from benchmarks.peers import Child
from benchmarks.rows import Goal, Row

CLIENT = "confluent-kafka"
NONE = "no backlog, no listener"


def backlog(environment: Environment) -> list[Row]:
    """Fill a topic, start a slow listener on it, and publish to it and to an empty one in turn."""
    size = environment.size
    group, name = "publish one by one", f"{size.backlog:,} unread, a slow listener"
    with ExitStack() as stack:
        bus = stack.enter_context(environment.bus(CLIENT))
        full, empty = environment.create_topic(), environment.create_topic()
        to_full, to_empty = workload.connected_notifier(bus, full), workload.connected_notifier(bus, empty)
        measure.report_progress(f"publishing {size.backlog:,}")
        workload.send_many(to_full, size.backlog)
        slow = Child("slow_listener", f"{environment.cluster.url}/?client={CLIENT}", full)
        stack.enter_context(slow).request("wait", 1)
        contestants = [
            # The listener runs in these rounds only, so it takes no time from the other.
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
        return [
            rows.make_ratio_row(group, rates, name, NONE, Goal("≥", 0.95)),
            rows.make_row(group, rates, NONE),
        ]
