"""How long one publish call takes, as its caller sees it, while the broker is well, hangs or is gone.

For each client library a process of its own publishes at a fixed pace, with a spool, over a
real local broker. Where that hangs or is gone, the calls begin once they go to the spool; those
until then count among the longest. The first rows send nothing anywhere: what they show beyond
some microseconds is the machine's, and the floor of all others. Meanwhile a process of the idle
class keeps each processor awake.
"""

import os
import signal
import uuid
from contextlib import ExitStack
from typing import Any

from benchmarks import measure, rows
from benchmarks.bare_clients import CLIENTS
from benchmarks.environment import Scene
from benchmarks.peers import Child
from benchmarks.rows import Row, Target

STATES = ("healthy", "hung", "gone")
IDLE = "nothing sent (the floor)"
GROUP = "one publish call"
SHARES = ("p50", "p99", "p99.9")
TARGETS = {
    "confluent-kafka": {"p50": Target("<", 20), "p99": Target("<", 200)},
    "kafka-python": {"p99": Target("<", 2_000)},
}
LONGEST = Target("<", 50_000)
Seen = dict[str, list[dict[str, Any]]]


def block(scene: Scene) -> list[Row]:
    """Make calls in each state with each client library, in turn."""
    seen: Seen = {}
    with ExitStack() as stack:
        for number in os.sched_getaffinity(0):
            stack.enter_context(Child("awake", str(number)))
        for number in range(scene.size.rounds):
            measure.say(f"round {number + 1}/{scene.size.rounds}: publish calls")
            with _caller(scene, "sqlite://", "noop") as idle:
                seen.setdefault(IDLE, []).append(idle.ask("work", scene.size.calls))
            for client in CLIENTS:
                for state in STATES:
                    _measure(scene, client, state, seen)
    return [row for name, found in seen.items() for row in rows_of(name, found)]


def _caller(scene: Scene, url: str, channel: str = "messagingv2") -> Child:
    return Child("caller", url, str(scene.directory / f"spool-{uuid.uuid4()}"), channel)


def _measure(scene: Scene, client: str, state: str, seen: Seen) -> None:
    cluster = scene.cluster
    with _caller(scene, f"{cluster.url}/?client={client}") as caller:
        caller.ask("prepare", 0)
        try:
            before = 0.0
            if state != "healthy":
                cluster.kill_node(1, signal.SIGSTOP if state == "hung" else signal.SIGKILL)
                before = caller.ask("divert", 0)
            found = caller.ask("work", scene.size.calls)
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
    # Never is never: the longest of all rounds, not the median.
    most = rows.spread([max(each["most"] for each in found)])
    made.append(Row(GROUP, f"{name}: longest", most, "µs", target=LONGEST if name != IDLE else None))
    for count, what in (("late", "calls over 50 ms"), ("lost", "lost")):
        if any(each[count] for each in found):
            made.append(Row(GROUP, f"{name}: {what}", _spread(found, count), ""))
    return made


def _spread(found: list[dict[str, Any]], name: str) -> rows.Spread:
    return rows.spread([each[name] for each in found])
