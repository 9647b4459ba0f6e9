"""Processes that publish and listen over one bus, what is done to them, and the verdict."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from faults import checker
from faults.history import Journal
from faults.workload import publisher
from notifier_kafka.errors import TopicNotFound
from notifier_kafka.wire import topic_names

# Wherever a process is started, in a namespace or a directory of its own, it finds this package.
ROOT = pathlib.Path(__file__).parents[1]
PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
ENVIRONMENT = os.environ | {"PYTHONPATH": PATH}
# More of everything, and more patience: see CONTRIBUTING.md.
LOAD = 20 if os.environ.get("NOTIFIER_KAFKA_SOAK") else 1
PATIENCE = 120.0 * LOAD
SESSION = 4.0  # seconds, on Kafka
BATCH = 50  # what a listener polls at once, so what it may repeat after a fault


def until(condition: Callable[[], object], what: Callable[[], str] | str, patience: float = PATIENCE) -> None:
    """Wait for what has to come true."""
    deadline = time.monotonic() + patience
    while True:
        begun = time.monotonic()
        if condition():
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what if isinstance(what, str) else what()}")
        # Looking into long journals must not take the processor from those who write them.
        time.sleep(max(0.05, 3 * (time.monotonic() - begun)))


@dataclasses.dataclass(frozen=True)
class Bus:
    """Where a case takes place. ``prefix`` comes before each command, as a namespace needs it."""

    name: str
    url: str
    log: pathlib.Path | None = None
    prefix: tuple[str, ...] = ()


def kafka(url: str, client: str, **more: Any) -> Bus:
    """The bus of a cluster at ``url``, with options of the driver."""
    settings = {"client": client, "session_timeout": SESSION, "topic_partitions": 4} | more
    return Bus(client, f"{url}/?" + "&".join(f"{name}={value}" for name, value in settings.items()))


class Actor:
    """A process with a journal."""

    def __init__(self, name: str, command: list[str], directory: pathlib.Path) -> None:
        self.name = name
        self.journal = directory / f"{name}.journal"
        self._said = directory / f"{name}.stderr"
        self._places: dict[str, tuple[int, int]] = {}
        self.killed = self._ending = False
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said, env=ENVIRONMENT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, sign: signal.Signals) -> None:
        self._process.send_signal(sign)

    def end(self) -> None:
        """Send SIGTERM, once: a second one hits an interpreter that no longer listens."""
        if not self._ending and self.running():
            self._ending = True
            self.send(signal.SIGTERM)

    def kill(self) -> None:
        self.killed = True
        self._process.kill()
        self._process.wait()

    def running(self) -> bool:
        return self._process.poll() is None

    def count(self, what: str) -> int:
        """Count the lines that say so; reads only what is new."""
        place, count = self._places.get(what, (0, 0))
        with contextlib.suppress(FileNotFoundError), self.journal.open("rb") as file:
            file.seek(place)
            whole = file.read().rpartition(b"\n")[0]
            if whole:
                place += len(whole) + 1
                count += whole.count(b'{"what": "%s"' % what.encode())
        self._places[what] = place, count
        return count

    def await_count(self, what: str, count: int) -> None:
        def enough() -> bool:
            assert self.running() or self.count(what) >= count, f"{self.name} ended: {self.said()}"
            return self.count(what) >= count

        until(enough, lambda: f"{count} {what} of {self.name}, has {self.count(what)}: {self.said()}")

    def await_end(self) -> None:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end: {self.said()}") from None
        assert self.killed or code == 0, f"{self.name} ended with {code}: {self.said()}"

    def said(self) -> str:
        return self._said.read_text(errors="replace")[-3000:]

    def clear(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()


class Scene:
    """One case over one bus. Topics and groups are its own."""

    def __init__(self, bus: Bus, directory: pathlib.Path, note: Callable[[str], None]) -> None:
        self.bus = bus
        self.topic = f"faults-{uuid.uuid4().hex[:10]}"
        self._directory = directory
        self._note = note
        self.publishers: list[Actor] = []
        self.listeners: list[Actor] = []
        self.controls: list[Actor] = []

    def publish(self, name: str, count: int, **more: Any) -> Actor:
        options = {"notifications.wait_timeout": PATIENCE} | more.pop("options", {})
        plan = {"name": name, "count": count, "topic": self.topic, "options": options} | more
        self.publishers.append(self._start("publishes", name, plan))
        return self.publishers[-1]

    def listen(self, name: str, pool: str, **more: Any) -> Actor:
        options = {"listener.batch_size": BATCH, "listener.requeue_delay": 0.5} | more.pop("options", {})
        plan = {"pool": pool, "group": self.group(pool), "topic": self.topic, "options": options} | more
        self.listeners.append(self._start("listens", name, plan))
        return self.listeners[-1]

    def control(self) -> None:
        """Watch each processor beside what is measured; the files say when the machine was late."""
        for number in sorted(os.sched_getaffinity(0)):
            name = f"control-{number}"
            file = str(self._directory / f"{name}.control")
            command = [sys.executable, "-m", "faults.workload.control", file, str(number)]
            self.controls.append(Actor(name, command, self._directory))

    def group(self, pool: str) -> str:
        return f"{pool}-{self.topic}"

    def has_seen(self, publisher: str, pools: Mapping[str, int]) -> bool:
        """Say whether each pool was given all that a publisher offered."""
        lines = checker.lines(self._directory / f"{publisher}.journal")
        offered = {line["id"] for line in lines if line["what"] == "offered"}
        seen: dict[str, set[str]] = {pool: set() for pool in pools}
        for each in self.listeners:
            for line in checker.lines(each.journal) if each.journal.exists() else ():
                if line["what"] in ("handled", "refused"):
                    seen[line["pool"]].add(line["id"])
        return all(offered <= ids for ids in seen.values())

    def nothing_waits(self, pools: Mapping[str, int]) -> bool:
        """Say whether each pool committed all that is on the log for it, refusals included."""
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

    def verdict(self, pools: Mapping[str, int]) -> checker.Verdict:
        return checker.check(self._directory, pools)

    def finish(self, pools: Mapping[str, int]) -> checker.Verdict:
        """Wait until all is published and handled, end everybody, and judge.

        ``pools`` says how often each may repeat something; at the time of the end, since a
        test may learn only then how many faults there were.
        """
        for each in self.publishers:
            each.await_end()
        until(lambda: not self.verdict(pools).lost, lambda: self._report(pools))
        return self.judge(pools)

    def judge(self, pools: Mapping[str, int]) -> checker.Verdict:
        self.end_listeners()
        verdict = self.verdict(pools)
        self._note(str(verdict).splitlines()[0])
        return verdict

    def end_listeners(self) -> None:
        for each in self.listeners:
            each.end()
        for each in self.listeners:
            each.await_end()

    def set_aside(self, pool: str, breakage: str = "") -> int:
        """Journal what is among the dead letters of a pool; return how many they are."""
        bus = publisher.connect(self.bus.url, {})
        letters = topic_names.dead_letter_topic(self.group(pool))
        journal = Journal(self._directory / f"{pool}-dead-letters.journal")
        found = [delivery for span in bus.driver.spans([letters]) for delivery in bus.driver.read(span)]
        bus.cleanup()
        for delivery in found:
            value = (delivery.record.value or b"").lstrip(b"\xff")
            payload = json.loads(json.loads(value).get("oslo.message", value))
            journal.write("set_aside", pool=pool, id=payload.get("payload", payload)["id"])
        return len(found)

    def pause(self, actor: Actor) -> None:
        """Stop a process, but not while it holds the lock of an SQLite log: nobody could go on."""

        def stopped() -> bool:
            actor.send(signal.SIGSTOP)
            # One of its threads hears of it; the others may be a while.
            until(lambda: _stands_still(actor.pid), "a process to stop")
            if self.bus.log is None or _is_free(pathlib.Path(f"{self.bus.log}-lock")):
                return True
            actor.send(signal.SIGCONT)
            return False

        until(stopped, "the lock to be free")

    def clear(self) -> None:
        for each in self.publishers + self.listeners + self.controls:
            each.clear()

    def _report(self, pools: Mapping[str, int]) -> str:
        said = "\n".join(f"{each.name}: {each.said()}" for each in self.publishers + self.listeners)
        return f"everything: {self.verdict(pools)}\n{said}"

    def _start(self, program: str, name: str, plan: dict[str, Any]) -> Actor:
        plan = {"url": self.bus.url, "journal": str(self._directory / f"{name}.journal")} | plan
        command = [*self.bus.prefix, sys.executable, "-m", f"faults.{program}", json.dumps(plan)]
        return Actor(name, command, self._directory)


def _stands_still(pid: int) -> bool:
    stats = [each.read_text() for each in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


def _is_free(path: pathlib.Path) -> bool:
    with path.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


@contextlib.contextmanager
def opened(bus: Bus, directory: pathlib.Path, note: Callable[[str], None]) -> Iterator[Scene]:
    scene = Scene(bus, directory, note)
    try:
        yield scene
    finally:
        scene.clear()
