"""A publisher that writes a history: ``python -m faults.workload.publisher PLAN``.

PLAN is a ``PublisherPlan`` as JSON. It records every notification before the call and after it.
SIGTERM ends the process after the current call, SIGUSR1 and SIGUSR2 step its clock by an hour.
"""

import dataclasses
import json
import os
import pathlib
import resource
import signal
import sys
import time
from typing import Any

from oslo_config import cfg

from faults import checker
from faults.history import History
from faults.nemesis import saboteurs
from faults.topology import clock, end_with_parent
from faults.workload.call_timer import CallTimer
from notifier_kafka import Notification, NotificationTransport, Notifier, get_notification_transport
from notifier_kafka.config import options
from notifier_kafka.driver import Limits, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.publishing.lost_notifications import OnLoss
from notifier_kafka.wire import topic_names

MEMORY_SECONDS = 1.0  # between two records of the memory in use
FLUSH_SECONDS = 0.1  # between two checks of a stream whether anything is unsent


@dataclasses.dataclass
class PublisherPlan:
    """What to publish and how.

    ``mode``: ``wait`` waits for each, ``chunk`` for each chunk, ``stream`` once at the end.
    ``poison_every``: one in so many is a poison message. ``fork_at``: from that number on a child
    publishes too, with the notifier made before the fork. ``resume``: continue behind the end of
    the history. ``max_file_bytes``: a limit that stands for a full disk where none can be mounted.
    """

    url: str
    history: str
    name: str
    topic: str
    count: int
    mode: str = "chunk"
    chunk: int = 20
    rate: float = 0.0
    keys: int = 20
    poison_every: int = 0
    fork_at: int = 0
    resume: bool = False
    padding: int = 0
    max_file_bytes: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    saboteur: str = ""


def connect(
    url: str, values: dict[str, Any], saboteur: str = "", on_failure: OnLoss | None = None
) -> NotificationTransport:
    """Return a transport with these option values; names are GROUP.OPTION."""
    conf = cfg.ConfigOpts()
    conf([], project="faults", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    for name, value in values.items():
        group, _, option = name.rpartition(".")
        conf.set_override(option, value, group=group)
    bus = get_notification_transport(conf, url, on_failure=on_failure)
    if saboteur:
        bus.driver = saboteurs.sabotage(bus.driver, saboteur)
    return bus


class Publisher:
    def __init__(self, plan: PublisherPlan) -> None:
        self._plan = plan
        self._name = plan.name
        first = next_number(plan.history) if plan.resume else 0
        self._numbers = range(first, plan.count)
        self._history = History(plan.history)
        self._history.write("started")
        self._failed: set[str] = set()
        self._timer = CallTimer()
        self._call_field = "first"
        self._memory_noted = 0.0
        self._flushed = time.monotonic()
        self._bus = connect(plan.url, plan.options, plan.saboteur, self._fail)
        self._notifier = Notifier(
            self._bus, plan.name, driver="messagingv2", topics=[plan.topic], key="payload:key"
        )
        self._waiting_notifier = self._notifier.prepare(wait=True)
        self._stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def run(self) -> None:
        plan = self._plan
        step = plan.chunk if plan.mode == "chunk" else 1
        child = 0
        for begin in self._numbers[::step]:
            if self._stopped:
                break
            if plan.fork_at and begin == plan.fork_at - plan.fork_at % step:
                child = self._fork()
            numbers = range(begin, min(begin + step, plan.count))
            getattr(self, f"_{plan.mode}")([self._offer(number) for number in numbers])
            if plan.poison_every and begin % plan.poison_every == 0:
                self._poison(begin)
            self._note_memory()
            if plan.rate:
                time.sleep(step / plan.rate)
        self._end(child)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def _offer(self, number: int) -> dict[str, Any]:
        key = f"{self._name}.{number % self._plan.keys}"
        payload = {"id": f"{self._name}-{number}", "key": key, "number": number}
        self._history.write("offered", topic=self._plan.topic, **payload)
        return payload | ({"padding": "x" * self._plan.padding} if self._plan.padding else {})

    def _wait(self, payloads: list[dict[str, Any]]) -> None:
        each = payloads[0]["id"]
        try:
            (receipt,) = self._waiting_notifier.info({}, "faults.step", payloads[0]) or []
        except MessagingException as error:
            self._history.write("failed", id=each, reason=str(error))
        else:
            location = {"partition": receipt.partition.number, "offset": receipt.offset}
            self._history.write("acknowledged", id=each, **location)

    def _chunk(self, payloads: list[dict[str, Any]]) -> None:
        ids = [{"id": payload["id"]} for payload in payloads]
        try:
            receipts = (
                self._waiting_notifier.send_many({}, "info", [("faults.step", each) for each in payloads])
                or []
            )
        except MessagingException as error:
            self._history.write_all("failed", [each | {"reason": str(error)} for each in ids])
        else:
            self._history.write_all("acknowledged", ids)
            # Receipts come in the order of settlement: which belongs to which id is unknown.
            locations = [[receipt.partition.number, receipt.offset] for receipt in receipts]
            self._history.write("receipts", ids=[each["id"] for each in ids], locations=locations)

    def _stream(self, payloads: list[dict[str, Any]]) -> None:
        each = payloads[0]["id"]
        self._timer.start()
        try:
            self._notifier.info({}, "faults.step", payloads[0])
        except MessagingException as error:
            self._history.write("failed", id=each, reason=str(error), **self._took())
        else:
            self._history.write("accepted", id=each, **self._took())
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush(0.05)

    def _took(self) -> dict[str, float]:
        took, queued = self._timer.read()
        # The first call of a process has a column of its own.
        what, self._call_field = self._call_field, "took"
        return {what: took, "queued": queued}

    def _note_memory(self) -> None:
        """Record the memory in use and its peak once a second."""
        if time.monotonic() - self._memory_noted > MEMORY_SECONDS:
            self._memory_noted = time.monotonic()
            status = pathlib.Path("/proc/self/status").read_text()
            peak, resident = (int(status.partition(f"{each}:")[2].split()[0]) for each in ("VmHWM", "VmRSS"))
            self._history.write("memory", peak=peak / 1024, resident=resident / 1024)

    def _flush(self, timeout: float) -> None:
        """Record how many are unsent, or -1 when something was lost without a report."""
        self._flushed = time.monotonic()
        left = self._notifier.flush(timeout)
        counts = self._bus.counters.counts()
        lost = sum(count for name, count in counts.items() if name.startswith("lost."))
        self._history.write("flushed", left=left if lost <= len(self._failed) else -1)

    def _fail(self, notification: Notification, error: MessagingException) -> None:
        each = notification.payload["id"]
        self._failed.add(each)
        self._history.write("failed", id=each, reason=str(error))

    def _poison(self, number: int) -> None:
        """Publish bytes that are not a notification; the product has to move them to the dead letters."""
        each = {"id": f"{self._name}-poison-{number}"}
        self._history.write("offered", topic=self._plan.topic, key=None, number=number, **each)
        failures: list[MessagingException] = []
        publisher = self._bus.driver.publisher(lambda _, error: failures.append(error), Limits())
        publisher.offer(
            Record(topic_names.bus_topic(self._plan.topic, "info"), b"\xff" + json.dumps(each).encode())
        )
        assert publisher.flush(60.0) == 0
        publisher.close()
        assert not failures, failures
        self._history.write("acknowledged", **each)

    def _fork(self) -> int:
        child = os.fork()
        if not child:
            self._name += "-child"
            path, dot, suffix = self._plan.history.rpartition(".")
            self._history = History(f"{path}-child{dot}{suffix}")
            self._timer = CallTimer()
            self._memory_noted = 0.0
        return child

    def _end(self, child: int) -> None:
        if self._plan.mode == "stream":
            self._flush(120.0)
        self._bus.cleanup()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the forked child failed"


def next_number(history: str) -> int:
    """Return the number that follows the last one offered in a history."""
    path = pathlib.Path(history)
    said = checker.read_events(path) if path.exists() else ()
    return max((line["number"] for line in said if line["type"] == "offered"), default=-1) + 1


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    clock.make_steppable()
    plan = PublisherPlan(**json.loads(sys.argv[1]))
    if plan.max_file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.max_file_bytes, plan.max_file_bytes))
    Publisher(plan).run()
