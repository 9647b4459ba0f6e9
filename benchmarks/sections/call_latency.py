"""How long one publishing call takes for its caller, while the broker is healthy, hung or gone.

For each client library a process publishes at a fixed pace, with a spool, over a local broker.
With a broker that is hung or gone, percentiles count the calls after the change to the spool, and the
longest call counts all of them. The first rows send nothing: they show what the machine adds to
every other row. A process at idle priority keeps each processor awake.
"""

import os
import signal
import uuid
from contextlib import ExitStack
from typing import Any

from benchmarks import measure, rows
from benchmarks.bare_clients import CLIENTS
from benchmarks.environment import Environment
from benchmarks.peers import Child
from benchmarks.rows import Goal, Row

STATES = ("healthy", "hung", "gone")
IDLE = "nothing sent (the floor)"
GROUP = "one publish call"
SHARES = ("p50", "p99", "p99.9")
TARGETS = {
    "confluent-kafka": {"p50": Goal("<", 20), "p99": Goal("<", 200)},
    "kafka-python": {"p99": Goal("<", 2_000)},
}
LONGEST = Goal("<", 50_000)
Seen = dict[str, list[dict[str, Any]]]


def measure_calls(environment: Environment) -> list[Row]:
    """Measure each client library in each state of the broker, in turn."""
    seen: Seen = {}
    with ExitStack() as stack:
        for number in os.sched_getaffinity(0):
            stack.enter_context(Child("keep_cpu_awake", str(number)))
        for number in range(environment.size.rounds):
            measure.report_progress(f"round {number + 1}/{environment.size.rounds}: publish calls")
            with _caller(environment, "sqlite://", "noop") as idle:
                seen.setdefault(IDLE, []).append(idle.request("work", environment.size.calls))
            for client in CLIENTS:
                for state in STATES:
                    _measure(environment, client, state, seen)
    return [row for name, found in seen.items() for row in rows_of(name, found)]


def _caller(environment: Environment, url: str, channel: str = "messagingv2") -> Child:
    return Child("paced_caller", url, str(environment.directory / f"spool-{uuid.uuid4()}"), channel)


def _measure(environment: Environment, client: str, state: str, seen: Seen) -> None:
    cluster = environment.cluster
    with _caller(environment, f"{cluster.url}/?client={client}") as caller:
        caller.request("prepare", 0)
        try:
            before = 0.0
            if state != "healthy":
                cluster.kill_node(1, signal.SIGSTOP if state == "hung" else signal.SIGKILL)
                before = caller.request("divert", 0)
            found = caller.request("work", environment.size.calls)
            found["most"] = max(before, found["most"])
            seen.setdefault(f"{client}, {state}", []).append(found)
        finally:
            cluster.kill_node(1, signal.SIGCONT)
            cluster.start_node(1)


def rows_of(name: str, found: list[dict[str, Any]]) -> list[Row]:
    """Make the rows of one client and state."""
    targets = TARGETS.get(name.split(",", maxsplit=1)[0], {})
    made = [
        Row(GROUP, f"{name}: {share}", _spread(found, share), "µs", target=targets.get(share))
        for share in SHARES
    ]
    # The limit holds for every call: the longest of all rounds, not the median.
    most = rows.spread([max(each["most"] for each in found)])
    made.append(Row(GROUP, f"{name}: longest", most, "µs", target=LONGEST if name != IDLE else None))
    for count, what in (("late", "calls over 50 ms"), ("lost", "lost")):
        if any(each[count] for each in found):
            made.append(Row(GROUP, f"{name}: {what}", _spread(found, count), ""))
    return made


def _spread(found: list[dict[str, Any]], name: str) -> rows.Spread:
    return rows.spread([each[name] for each in found])
