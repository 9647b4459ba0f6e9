"""One run: a fault under a workload, and the row of its result."""

import contextlib
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from faults import checker, timings
from faults.fault import Fault, Workload
from faults.harness import Case, opened_case
from faults.history import History
from faults.processes import BATCH_RECORDS, ENVIRONMENT, TIMEOUT_SECONDS, WorkloadProcess, wait_until
from faults.rows import Row, allowed_growth, broken_limits
from faults.topology.topologies import Topology

MAIN_POOL = "main"
BYSTANDER_POOL = "bystander"  # no fault hits its listener, and no refusal of the main pool may reach it
POOLS = (MAIN_POOL, BYSTANDER_POOL)
ENDLESS_COUNT = 1 << 40  # such publishers end by SIGTERM
PUBLISHER_COUNT, MEMBER_COUNT = 2, 2
BULK_RECORDS = 500  # of one publishing call and of one poll, under a heavy workload
INJECTIONS_UNDER_LOAD = 10  # under a heavy workload
MIN_RECORDS_PER_SECOND = 1000.0  # of a heavy workload; the timeouts allow for it
SPOOL_REPEATS = 2_000  # records; a spool sends no more before it stores its position
LIGHT_RATE = 500.0  # notifications a second of each publisher, at most


class Run:
    """One fault under a workload of two publishers and two listeners; one publisher waits for receipts.

    Faults hit these four. Another pool, the bystander, listens to the same topic.
    """

    def __init__(
        self, fault: Fault, topology: Topology, case: Case, workload: Workload, directory: pathlib.Path
    ) -> None:
        self.fault = fault
        self.topology = topology
        self.case = case
        self.workload = workload
        self.directory = directory
        self.repeat_bound = 0
        self.publishers: dict[str, WorkloadProcess] = {}
        self.listeners: list[WorkloadProcess] = []
        self._outboxes: list[dict[str, Any]] = [{}]
        self.bystander: WorkloadProcess | None = None
        self._marks = History(directory / "harness.history")
        self._named = 0
        self.spool = directory / "spool"

    # For faults.

    @property
    def cluster(self) -> Any:
        return self.topology.cluster

    def mark_repaired(self) -> None:
        """Record that the system is repaired: recovery is measured from here."""
        self._marks.write("repaired")

    def mark_erased(self) -> None:
        """Record that an administrator deleted what was offered until now: it is promised no longer."""
        self._marks.write("erased")

    def allow_repeats(self, rebalances: int = 1) -> None:
        """Allow each member to repeat the batch that it was handling at each rebalance."""
        self.repeat_bound += (
            rebalances * MEMBER_COUNT * (BULK_RECORDS if self.workload.count else BATCH_RECORDS)
        )

    def allow_spool_repeats(self, spooled: int) -> None:
        """Allow what a killed process may send again from a spool of so many records."""
        self.repeat_bound += min(spooled, SPOOL_REPEATS)

    def allow_rereading(self, seconds: float) -> None:
        """Allow what listeners may have read of a new topic before they start it again from its beginning."""
        self.repeat_bound += round(PUBLISHER_COUNT * self.workload.rate * seconds)

    def publish(self, name: str, mode: str, **more: Any) -> WorkloadProcess:
        """Start a publisher, or start it again: it continues behind the end of its history."""
        plan: dict[str, Any] = {
            "mode": mode,
            "rate": self.workload.rate,
            "resume": True,
            "saboteur": self.workload.saboteur,
        }
        if self.workload.count:
            plan["chunk"] = BULK_RECORDS
        plan |= self.fault.publisher | more
        if plan.pop("spool", False):
            plan["options"] = {"notifications.spool_dir": str(self.spool), "notifications.spool_after": 0.5}
        self._outboxes.append(plan.get("options", {}))
        self.publishers[name] = self.case.publish(name, plan.pop("count", ENDLESS_COUNT), **plan)
        return self.publishers[name]

    def flush_spool(self, directory: pathlib.Path) -> None:
        """Run the command that sends what processes left in a spool."""
        command = [sys.executable, "-m", "notifier_kafka.cli.main", "--transport-url", self.case.bus.url]
        command += ["spool", "flush", "--directory", str(directory), "--timeout", str(TIMEOUT_SECONDS)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"spool flush: {done.stderr.strip()}"

    def listen(self, **more: Any) -> WorkloadProcess:
        """Start another listener of the main pool."""
        self._named += 1
        # Some work for each, so that a fault hits busy members; under a heavy workload they are busy anyway.
        work_seconds = 0.0005 if self.workload.rate <= LIGHT_RATE else 0.0
        plan = {"work_seconds": work_seconds} | self.fault.listener | more
        self.listeners.append(self._listen(f"listener-{self._named}", MAIN_POOL, **plan))
        return self.listeners[-1]

    def stop(self, process: WorkloadProcess) -> None:
        """End a publisher or a listener; the run no longer waits for its progress."""
        if process in self.listeners:
            self.listeners.remove(process)
        else:
            del self.publishers[process.name]
        process.terminate()
        process.wait_for_exit()

    def handled_count(self) -> int:
        return sum(each.count("handled") for each in self.case.listeners if each is not self.bystander)

    def wait_for_progress(self) -> None:
        """Wait until every publisher and the main pool make progress."""
        goals = {each: each.count("offered") + 40 for each in self.publishers.values() if each.is_running()}
        handled = self.handled_count() + 80
        wait_until(
            lambda: (
                self.handled_count() >= handled
                and all(each.count("offered") >= n for each, n in goals.items())
            ),
            lambda: f"progress; {self._last_lines()}",
        )

    @contextlib.contextmanager
    def disruption(self, rebalances: int = 2) -> Iterator[None]:
        """Do harm within this context; at its end the system is repaired."""
        self.allow_repeats(rebalances)
        yield
        self.mark_repaired()

    # The run itself.

    def execute(self) -> Row:
        begun = time.monotonic()
        injections, broken = 0, []
        try:
            self._begin()
            while (
                not injections
                or time.monotonic() - begun < self.workload.seconds
                or self._offered() < self.workload.count
            ):
                self.fault.inject(self)
                self.wait_for_progress()
                injections += 1
                self._wait_for_workload(injections)
            self._end()
        except Exception as error:  # noqa: BLE001 - a soak goes on, and the row says what happened
            broken.append(f"{type(error).__name__}: {error}".partition("\n")[0][:300])
        verdict = self.case.check(self._pools())
        return self._row(verdict, injections, time.monotonic() - begun, broken)

    def _wait_for_workload(self, injections: int) -> None:
        """Let a tenth of a heavy workload pass before the next injection."""
        goal = min(self.workload.count, injections * self.workload.count // INJECTIONS_UNDER_LOAD)
        timeout = TIMEOUT_SECONDS + self.workload.count / MIN_RECORDS_PER_SECOND
        wait_until(lambda: self._offered() >= goal, lambda: f"the workload; {self._last_lines()}", timeout)

    def _offered(self) -> int:
        # A publisher that is started again continues its history.
        by_history = {each.history: each for each in self.case.publishers}.values()
        return sum(each.count("offered") for each in by_history)

    def _begin(self) -> None:
        self.case.start_controls()
        # With a batch endpoint, as the main pool has single ones.
        self.bystander = self._listen(BYSTANDER_POOL, BYSTANDER_POOL, batch=True)
        for _ in range(MEMBER_COUNT):
            self.listen()
        self.allow_repeats()  # for the second one, which joins while the first handles a batch
        self.publish("waiting", "chunk")
        self.publish("streaming", "stream")
        self.wait_for_progress()

    def _end(self) -> None:
        for each in self.publishers.values():
            each.terminate()
        for each in self.case.publishers:
            each.wait_for_exit()
        if self.spool.exists():
            self.flush_spool(self.spool)
        pools = self._pools()
        # What is lost never comes: do not wait for it once all pools have caught up.
        wait_until(
            lambda: not self.case.check(pools).lost or self.case.has_caught_up(pools),
            lambda: f"everything to be handled; {self._last_lines()}",
            TIMEOUT_SECONDS + self.workload.count / MIN_RECORDS_PER_SECOND,
        )
        self.case.stop_listeners()
        for pool in POOLS:
            self.case.record_dead_letters(pool)

    def _pools(self) -> dict[str, int]:
        return dict.fromkeys(POOLS, self.repeat_bound)

    def _listen(self, name: str, pool: str, **plan: Any) -> WorkloadProcess:
        if self.workload.count:
            plan["options"] = {"listener.batch_size": BULK_RECORDS}
        started = self.case.listen(name, pool, saboteur=self.workload.saboteur, **plan)
        # Before that it has no handler for SIGTERM.
        started.wait_for("listening", 1)
        return started

    def _last_lines(self) -> str:
        lines = [
            each.stderr_tail().strip().rpartition("\n")[2]
            for each in self.case.publishers + self.case.listeners
        ]
        return "; ".join(dict.fromkeys(filter(None, lines)))

    def _row(self, verdict: checker.Verdict, injections: int, seconds: float, broken: list[str]) -> Row:
        timed = timings.measure(self.directory)
        memory_bound = max(allowed_growth(each, verdict.offered) for each in self._outboxes)
        violations = {
            what: text for what, text in verdict.examples.items() if what not in self.fault.tolerates
        }
        return Row(
            fault=self.fault.name,
            bus=self.case.bus.name,
            injections=injections,
            seconds=seconds,
            offered=verdict.offered,
            acknowledged=verdict.acknowledged,
            failed=verdict.failed,
            handled=verdict.handled,
            lost=verdict.lost,
            repeated=verdict.repeated,
            repeat_bound=sum(self._pools().values()),
            reordered=verdict.reordered,
            wrong=verdict.invented + verdict.wrong_pool + verdict.false_acknowledged,
            memory_bound=memory_bound,
            broken=broken
            + [f"{what}: {text}" for what, text in violations.items()]
            + broken_limits(timed, memory_bound),
            **timed._asdict(),
        )


def run_fault(
    fault: Fault, topology: Topology, client: str, workload: Workload, directory: pathlib.Path
) -> Row:
    """Run a fault in a topology, and repair that."""
    bus = topology.bus(client, directory, fault.url_options)
    with opened_case(bus, directory, lambda _row: None) as case:
        try:
            return Run(fault, topology, case, workload, directory).execute()
        finally:
            topology.repair()
