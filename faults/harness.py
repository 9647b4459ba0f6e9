"""One case: the processes that publish and listen on a bus, and the verdict."""

import contextlib
import json
import os
import pathlib
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from faults import checker
from faults.history import History
from faults.processes import (
    BATCH_RECORDS,
    TIMEOUT_SECONDS,
    Bus,
    WorkloadProcess,
    is_stopped,
    is_unlocked,
    wait_until,
)
from faults.workload import publisher
from notifier_kafka.errors import TopicNotFound
from notifier_kafka.wire import topic_names


class Case:
    """One case on one bus, with a topic and groups of its own. ``note`` gets a line of the verdict."""

    def __init__(self, bus: Bus, directory: pathlib.Path, note: Callable[[str], None]) -> None:
        self.bus = bus
        self.topic = f"faults-{uuid.uuid4().hex[:10]}"
        self._directory = directory
        self._note = note
        self.publishers: list[WorkloadProcess] = []
        self.listeners: list[WorkloadProcess] = []
        self.controls: list[WorkloadProcess] = []

    def publish(self, name: str, count: int, **more: Any) -> WorkloadProcess:
        options = {"notifications.wait_timeout": TIMEOUT_SECONDS} | more.pop("options", {})
        plan = {"name": name, "count": count, "topic": self.topic, "options": options} | more
        self.publishers.append(self._start("publisher", name, plan))
        return self.publishers[-1]

    def listen(self, name: str, pool: str, **more: Any) -> WorkloadProcess:
        options = {"listener.batch_size": BATCH_RECORDS, "listener.requeue_delay": 0.5} | more.pop(
            "options", {}
        )
        plan = {"pool": pool, "group": self.group(pool), "topic": self.topic, "options": options} | more
        self.listeners.append(self._start("listener", name, plan))
        return self.listeners[-1]

    def start_controls(self) -> None:
        """Watch each processor during the measurement; the files say when the machine was late."""
        for number in sorted(os.sched_getaffinity(0)):
            name = f"control-{number}"
            file = str(self._directory / f"{name}.control")
            command = [sys.executable, "-m", "faults.workload.control", file, str(number)]
            self.controls.append(WorkloadProcess(name, command, self._directory))

    def group(self, pool: str) -> str:
        return f"{pool}-{self.topic}"

    def has_seen(self, publisher: str, pools: Mapping[str, int]) -> bool:
        """Tell whether each pool has seen all that a publisher offered."""
        lines = checker.read_events(self._directory / f"{publisher}.history")
        offered = {line["id"] for line in lines if line["type"] == "offered"}
        seen: dict[str, set[str]] = {pool: set() for pool in pools}
        for each in self.listeners:
            for line in checker.read_events(each.history) if each.history.exists() else ():
                if line["type"] in ("handled", "refused"):
                    seen[line["pool"]].add(line["id"])
        return all(offered <= ids for ids in seen.values())

    def has_caught_up(self, pools: Mapping[str, int]) -> bool:
        """Tell whether each pool committed all that is on the log for it, refusals included."""
        bus = publisher.connect(self.bus.url, {})
        main = topic_names.bus_topic(self.topic, "info")
        ends = 0
        behind = False
        for group in map(self.group, pools):
            positions = bus.driver.admin().describe_group(group).positions
            for topic in (main, topic_names.requeue_topic(group, main)):
                with contextlib.suppress(TopicNotFound):  # nothing was refused
                    for span in bus.driver.spans([topic]):
                        ends += span.stop
                        behind |= positions.get(span.partition, 0) < span.stop
        bus.cleanup()
        return bool(ends) and not behind

    def check(self, pools: Mapping[str, int]) -> checker.Verdict:
        return checker.check(self._directory, pools)

    def finish(self, pools: Mapping[str, int]) -> checker.Verdict:
        """Wait until all is published and handled, stop all listeners, and judge.

        ``pools`` says how many repetitions each may have. It is given here and not earlier: some
        tests know only at the end how many faults there were.
        """
        for each in self.publishers:
            each.wait_for_exit()
        wait_until(lambda: not self.check(pools).lost, lambda: self._report(pools))
        return self.judge(pools)

    def judge(self, pools: Mapping[str, int]) -> checker.Verdict:
        self.stop_listeners()
        verdict = self.check(pools)
        self._note(str(verdict).splitlines()[0])
        return verdict

    def stop_listeners(self) -> None:
        for each in self.listeners:
            each.terminate()
        for each in self.listeners:
            each.wait_for_exit()

    def record_dead_letters(self, pool: str) -> int:
        """Record the dead letters of a pool in a history; return their number."""
        bus = publisher.connect(self.bus.url, {})
        letters = topic_names.dead_letter_topic(self.group(pool))
        history = History(self._directory / f"{pool}-dead-letters.history")
        found = [delivery for span in bus.driver.spans([letters]) for delivery in bus.driver.read(span)]
        bus.cleanup()
        for delivery in found:
            value = (delivery.record.value or b"").lstrip(b"\xff")
            payload = json.loads(json.loads(value).get("oslo.message", value))
            history.write("dead_lettered", pool=pool, id=payload.get("payload", payload)["id"])
        return len(found)

    def pause(self, process: WorkloadProcess) -> None:
        """Stop a process, but not while it holds the lock of an SQLite log: all others would wait for it."""

        def stopped() -> bool:
            process.send_signal(signal.SIGSTOP)
            # The signal goes to one thread; the others stop a little later.
            wait_until(lambda: is_stopped(process.pid), "a process to stop")
            if self.bus.log is None or is_unlocked(pathlib.Path(f"{self.bus.log}-lock")):
                return True
            process.send_signal(signal.SIGCONT)
            return False

        wait_until(stopped, "the lock to be free")

    def destroy(self) -> None:
        for each in self.publishers + self.listeners + self.controls:
            each.destroy()

    def _report(self, pools: Mapping[str, int]) -> str:
        output = "\n".join(f"{each.name}: {each.stderr_tail()}" for each in self.publishers + self.listeners)
        return f"everything: {self.check(pools)}\n{output}"

    def _start(self, program: str, name: str, plan: dict[str, Any]) -> WorkloadProcess:
        plan = {"url": self.bus.url, "history": str(self._directory / f"{name}.history")} | plan
        command = [*self.bus.prefix, sys.executable, "-m", f"faults.workload.{program}", json.dumps(plan)]
        return WorkloadProcess(name, command, self._directory)


@contextlib.contextmanager
def opened_case(bus: Bus, directory: pathlib.Path, note: Callable[[str], None]) -> Iterator[Case]:
    """Make a case; all its processes end with the context."""
    case = Case(bus, directory, note)
    try:
        yield case
    finally:
        case.destroy()
