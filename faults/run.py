"""A load, the harm that a fault does under it, and the row that comes of it."""

import contextlib
import dataclasses
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from faults import checker, timings
from faults.harness import BATCH, ENVIRONMENT, PATIENCE, Actor, Scene, opened, until
from faults.history import Journal
from faults.rows import Row, late, promised
from faults.topology.topologies import Place

POOL = "crew"
BESIDE = "beside"  # a pool to which nothing is done: what concerns the crew alone has no business there
POOLS = (POOL, BESIDE)
ENDLESS = 1 << 40  # notifications; publishers are told to end
PUBLISHERS, MEMBERS = 2, 2
BULK = 500  # published at once, and polled at once, where a load is to be heavy
STRIKES = 10  # under such a load
CAUGHT_UP = 1000.0  # a second; what is done of such a load at least
FORWARDED = 2_000  # what a spool sends at most before it notes that
LIGHT = 500.0  # notifications a second of each publisher


@dataclasses.dataclass(frozen=True)
class Fault:
    """``strike`` does the harm once and mends it; it is called again while there is time.

    ``places`` are where it can happen, the usual one first. ``publish``, ``listen`` and
    ``driver`` are added to what publishers, listeners and the URL are told. ``forgives`` are
    verdicts that are no promise here. ``needs`` is what the machine must let us do, a key of
    ``__main__.NEEDS``: without it the fault is left out.
    """

    name: str
    about: str
    strike: "Callable[[Play], None]"
    places: tuple[str, ...]
    publish: dict[str, Any] = dataclasses.field(default_factory=dict)
    listen: dict[str, Any] = dataclasses.field(default_factory=dict)
    driver: dict[str, Any] = dataclasses.field(default_factory=dict)
    forgives: frozenset[str] = frozenset()
    needs: str = ""


@dataclasses.dataclass(frozen=True)
class Load:
    """How much, for how long at least, and with which product: ``sabotage`` names a broken one.

    ``count`` is what all publishers of a row offer at least.
    """

    seconds: float = 10.0
    rate: float = 200.0
    sabotage: str = ""
    count: int = 0


class Play:
    """One fault under a load: two publishers, of which one waits and one does not, and two listeners.

    They are the crew, to which faults are done; beside it another pool listens to the same topic.
    """

    def __init__(self, fault: Fault, place: Place, scene: Scene, load: Load, directory: pathlib.Path) -> None:
        self.fault = fault
        self.place = place
        self.scene = scene
        self.load = load
        self.directory = directory
        self.bound = 0
        self.publishers: dict[str, Actor] = {}
        self.listeners: list[Actor] = []
        self._outboxes: list[dict[str, Any]] = [{}]
        self.beside: Actor | None = None
        self._marks = Journal(directory / "harness.journal")
        self._named = 0
        self.spool = directory / "spool"

    # What faults say and do.

    @property
    def cluster(self) -> Any:
        return self.place.cluster

    def mark(self) -> None:
        """From now on things are to go on again."""
        self._marks.write("mark")

    def erase(self) -> None:
        """What was offered until now is promised no longer: an administrator deleted it."""
        self._marks.write("erased")

    def allow(self, changes: int = 1) -> None:
        """Partitions changed hands so often: each member may repeat the batch that it had under way."""
        self.bound += changes * MEMBERS * (BULK if self.load.count else BATCH)

    def repeat(self, spooled: int) -> None:
        """Who had so many in its spool was killed: what it had sent without noting it is sent again."""
        self.bound += min(spooled, FORWARDED)

    def reread(self, seconds: float) -> None:
        """For so long a listener may have read a topic without knowing that it is to begin it anew."""
        self.bound += round(PUBLISHERS * self.load.rate * seconds)

    def publish(self, name: str, how: str, **more: Any) -> Actor:
        """Start a publisher, or the next life of it, which goes on where the last one ended."""
        plan: dict[str, Any] = {
            "how": how,
            "rate": self.load.rate,
            "resume": True,
            "breakage": self.load.sabotage,
        }
        if self.load.count:
            plan["chunk"] = BULK
        plan |= self.fault.publish | more
        if plan.pop("spool", False):
            plan["options"] = {"notifications.spool_dir": str(self.spool), "notifications.spool_after": 0.5}
        self._outboxes.append(plan.get("options", {}))
        self.publishers[name] = self.scene.publish(name, plan.pop("count", ENDLESS), **plan)
        return self.publishers[name]

    def send_spool(self, place: pathlib.Path) -> None:
        """Run the command that sends what processes left in a spool."""
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", self.scene.bus.url]
        command += ["spool", "flush", "--directory", str(place), "--timeout", str(PATIENCE)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"spool flush: {done.stderr.strip()}"

    def listen(self, **more: Any) -> Actor:
        """Start another listener of the crew."""
        self._named += 1
        # A little work for each, so that a fault hits members at work; under load they have it anyway.
        work = 0.0005 if self.load.rate <= LIGHT else 0.0
        plan = {"work": work} | self.fault.listen | more
        self.listeners.append(self._listen(f"listener-{self._named}", POOL, **plan))
        return self.listeners[-1]

    def retire(self, guest: Actor) -> None:
        """End a publisher or a listener of which nothing is expected any more."""
        if guest in self.listeners:
            self.listeners.remove(guest)
        else:
            del self.publishers[guest.name]
        guest.end()
        guest.await_end()

    def handled(self) -> int:
        return sum(each.count("handled") for each in self.scene.listeners if each is not self.beside)

    def flow(self) -> None:
        """Wait until every publisher and the crew go on."""
        goals = {each: each.count("offered") + 40 for each in self.publishers.values() if each.running()}
        handled = self.handled() + 80
        until(
            lambda: (
                self.handled() >= handled and all(each.count("offered") >= n for each, n in goals.items())
            ),
            lambda: f"things to go on; {self._said()}",
        )

    @contextlib.contextmanager
    def hit(self, changes: int = 2) -> Iterator[None]:
        """A time of trouble that ends: what is mended at its end is marked."""
        self.allow(changes)
        yield
        self.mark()

    # What the harness does.

    def run(self) -> Row:
        begun = time.monotonic()
        times, broken = 0, []
        try:
            self._begin()
            while (
                not times or time.monotonic() - begun < self.load.seconds or self._offered() < self.load.count
            ):
                self.fault.strike(self)
                self.flow()
                times += 1
                self._await_load(times)
            self._end()
        except Exception as error:  # noqa: BLE001 - a soak goes on, and the row says what happened
            broken.append(f"{type(error).__name__}: {error}".partition("\n")[0][:300])
        verdict = self.scene.verdict(self._pools())
        return self._row(verdict, times, time.monotonic() - begun, broken)

    def _await_load(self, times: int) -> None:
        """Have a part of a heavy load go by in peace, so that it is struck ten times."""
        goal = min(self.load.count, times * self.load.count // STRIKES)
        patience = PATIENCE + self.load.count / CAUGHT_UP
        until(lambda: self._offered() >= goal, lambda: f"the load; {self._said()}", patience)

    def _offered(self) -> int:
        # The lives of a publisher share a journal.
        each_once = {each.journal: each for each in self.scene.publishers}.values()
        return sum(each.count("offered") for each in each_once)

    def _begin(self) -> None:
        self.scene.control()
        # In batches, which is the other way to listen and the cheaper one.
        self.beside = self._listen(BESIDE, BESIDE, batch=True)
        for _ in range(MEMBERS):
            self.listen()
        self.allow()  # the second joins while the first is at work
        self.publish("waits", "chunk")
        self.publish("streams", "stream")
        self.flow()

    def _end(self) -> None:
        for each in self.publishers.values():
            each.end()
        for each in self.scene.publishers:
            each.await_end()
        if self.spool.exists():
            self.send_spool(self.spool)
        pools = self._pools()
        # What is lost for good will not come, however long one waits.
        until(
            lambda: not self.scene.verdict(pools).lost or self.scene.nothing_waits(pools),
            lambda: f"all that is there to be handled; {self._said()}",
            PATIENCE + self.load.count / CAUGHT_UP,
        )
        self.scene.end_listeners()
        for pool in POOLS:
            self.scene.set_aside(pool)

    def _pools(self) -> dict[str, int]:
        return dict.fromkeys(POOLS, self.bound)

    def _listen(self, name: str, pool: str, **plan: Any) -> Actor:
        if self.load.count:
            plan["options"] = {"listener.batch_size": BULK}
        started = self.scene.listen(name, pool, breakage=self.load.sabotage, **plan)
        # Before that it does not know what SIGTERM means.
        started.await_count("listening", 1)
        return started

    def _said(self) -> str:
        said = [
            each.said().strip().rpartition("\n")[2] for each in self.scene.publishers + self.scene.listeners
        ]
        return "; ".join(dict.fromkeys(filter(None, said)))

    def _row(self, verdict: checker.Verdict, times: int, seconds: float, broken: list[str]) -> Row:
        timed = timings.measure(self.directory)
        bounded = max(promised(each, verdict.offered) for each in self._outboxes)
        blamed = {what: text for what, text in verdict.examples.items() if what not in self.fault.forgives}
        return Row(
            fault=self.fault.name,
            bus=self.scene.bus.name,
            times=times,
            seconds=seconds,
            offered=verdict.offered,
            acknowledged=verdict.acknowledged,
            failed=verdict.failed,
            handled=verdict.handled,
            lost=verdict.lost,
            duplicated=verdict.duplicated,
            bound=sum(self._pools().values()),
            reordered=verdict.reordered,
            wrong=verdict.invented + verdict.wrong_pool + verdict.false_acknowledged,
            bounded=bounded,
            broken=broken + [f"{what}: {text}" for what, text in blamed.items()] + late(timed, bounded),
            **timed._asdict(),
        )


def play(fault: Fault, place: Place, client: str, load: Load, directory: pathlib.Path) -> Row:
    """Play a fault in a place and mend what it broke."""
    bus = place.bus(client, directory, fault.driver)
    with opened(bus, directory, lambda _row: None) as scene:
        try:
            return Play(fault, place, scene, load, directory).run()
        finally:
            place.mend()
