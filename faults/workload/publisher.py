"""A publisher with a journal: ``python -m faults.workload.publisher PLAN``, a ``Publishing`` as JSON.

Every notification is journalled before its call and after it. SIGTERM ends it after the
call under way, SIGUSR1 and SIGUSR2 step its clock an hour.
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
from faults.history import Journal
from faults.nemesis import broken_products
from faults.topology import clock, end_with_parent
from faults.workload.stopwatch import Stopwatch
from notifier_kafka.config import options
from notifier_kafka.contract.driver import Limits, Record
from notifier_kafka.errors import MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import notifier, transport
from notifier_kafka.publishing.lost_notifications import OnLoss
from notifier_kafka.wire import topic_names

ACCOUNT = 1.0  # seconds
FLUSH = 0.1  # seconds between looks of a stream whether anything is left


@dataclasses.dataclass
class Publishing:
    """What to publish and how.

    ``how``: ``wait`` for each, ``chunk`` waits for so many at a time, ``stream`` waits at the
    end for all. ``poison``: every so many is no notification. ``fork_at``: from that number
    on a child does the same beside it, with the notifier made before the fork. ``resume``:
    go on where the journal of an earlier life ends. ``largest_file``: what stands for a full
    disk where none can be mounted.
    """

    url: str
    journal: str
    name: str
    topic: str
    count: int
    how: str = "chunk"
    chunk: int = 20
    rate: float = 0.0
    keys: int = 20
    poison: int = 0
    fork_at: int = 0
    resume: bool = False
    padding: int = 0
    largest_file: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    breakage: str = ""


def connect(
    url: str, values: dict[str, Any], breakage: str = "", on_failure: OnLoss | None = None
) -> transport.NotificationTransport:
    """Get a transport with options of the framework, by their names with their groups."""
    conf = cfg.ConfigOpts()
    conf([], project="faults", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    for name, value in values.items():
        group, _, option = name.rpartition(".")
        conf.set_override(option, value, group=group)
    bus = transport.get_notification_transport(conf, url, on_failure=on_failure)
    if breakage:
        bus.driver = broken_products.broken(bus.driver, breakage)
    return bus


class Publisher:
    def __init__(self, plan: Publishing) -> None:
        self._plan = plan
        self._name = plan.name
        first = offered(plan.journal) if plan.resume else 0
        self._numbers = range(first, plan.count)
        self._journal = Journal(plan.journal)
        self._journal.write("started")
        self._failed: set[str] = set()
        self._watch = Stopwatch()
        self._what = "first"
        self._accounted = 0.0
        self._flushed = time.monotonic()
        self._bus = connect(plan.url, plan.options, plan.breakage, self._fail)
        self._plain = notifier.Notifier(
            self._bus, plan.name, driver="messagingv2", topics=[plan.topic], key="payload:key"
        )
        self._waiting = self._plain.prepare(wait=True)
        self._stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def run(self) -> None:
        plan = self._plan
        step = plan.chunk if plan.how == "chunk" else 1
        child = 0
        for begin in self._numbers[::step]:
            if self._stopped:
                break
            if plan.fork_at and begin == plan.fork_at - plan.fork_at % step:
                child = self._fork()
            numbers = range(begin, min(begin + step, plan.count))
            getattr(self, f"_{plan.how}")([self._offer(number) for number in numbers])
            if plan.poison and begin % plan.poison == 0:
                self._poison(begin)
            self._account()
            if plan.rate:
                time.sleep(step / plan.rate)
        self._end(child)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def _offer(self, number: int) -> dict[str, Any]:
        key = f"{self._name}.{number % self._plan.keys}"
        payload = {"id": f"{self._name}-{number}", "key": key, "number": number}
        self._journal.write("offered", topic=self._plan.topic, **payload)
        return payload | ({"padding": "x" * self._plan.padding} if self._plan.padding else {})

    def _wait(self, payloads: list[dict[str, Any]]) -> None:
        each = payloads[0]["id"]
        try:
            (receipt,) = self._waiting.info({}, "faults.step", payloads[0]) or []
        except MessagingException as error:
            self._journal.write("failed", id=each, reason=str(error))
        else:
            place = {"partition": receipt.partition.number, "offset": receipt.offset}
            self._journal.write("acknowledged", id=each, **place)

    def _chunk(self, payloads: list[dict[str, Any]]) -> None:
        ids = [{"id": payload["id"]} for payload in payloads]
        try:
            receipts = self._waiting.send_many({}, "info", [("faults.step", each) for each in payloads]) or []
        except MessagingException as error:
            self._journal.write_all("failed", [each | {"reason": str(error)} for each in ids])
        else:
            self._journal.write_all("acknowledged", ids)
            # They come in the order in which they settled: which is whose is not told.
            places = [[receipt.partition.number, receipt.offset] for receipt in receipts]
            self._journal.write("landed", ids=[each["id"] for each in ids], places=places)

    def _stream(self, payloads: list[dict[str, Any]]) -> None:
        each = payloads[0]["id"]
        self._watch.start()
        try:
            self._plain.info({}, "faults.step", payloads[0])
        except MessagingException as error:
            self._journal.write("failed", id=each, reason=str(error), **self._took())
        else:
            self._journal.write("accepted", id=each, **self._took())
        if time.monotonic() - self._flushed > FLUSH:
            self._flush(0.05)

    def _took(self) -> dict[str, float]:
        took, queued = self._watch.read()
        # The first call of a process is shown by itself, and judged as the rest.
        what, self._what = self._what, "took"
        return {what: took, "queued": queued}

    def _account(self) -> None:
        """Journal once a second what memory this process has and had: the first time, what it begins with."""
        if time.monotonic() - self._accounted > ACCOUNT:
            self._accounted = time.monotonic()
            status = pathlib.Path("/proc/self/status").read_text()
            peak, resident = (int(status.partition(f"{each}:")[2].split()[0]) for each in ("VmHWM", "VmRSS"))
            self._journal.write("memory", peak=peak / 1024, resident=resident / 1024)

    def _flush(self, timeout: float) -> None:
        """Journal that nothing is left, unless something was lost of which nobody was told."""
        self._flushed = time.monotonic()
        left = self._plain.flush(timeout)
        counts = self._bus.counters.counts()
        lost = sum(count for name, count in counts.items() if name.startswith("lost."))
        self._journal.write("flushed", left=left if lost <= len(self._failed) else -1)

    def _fail(self, notification: Notification, error: MessagingException) -> None:
        each = notification.payload["id"]
        self._failed.add(each)
        self._journal.write("failed", id=each, reason=str(error))

    def _poison(self, number: int) -> None:
        """Put bytes on the topic that are no notification; they are promised to be set aside."""
        each = {"id": f"{self._name}-poison-{number}"}
        self._journal.write("offered", topic=self._plan.topic, key=None, number=number, **each)
        failures: list[MessagingException] = []
        publisher = self._bus.driver.publisher(lambda _, error: failures.append(error), Limits())
        publisher.offer(
            Record(topic_names.bus_topic(self._plan.topic, "info"), b"\xff" + json.dumps(each).encode())
        )
        assert publisher.flush(60.0) == 0
        publisher.close()
        assert not failures, failures
        self._journal.write("acknowledged", **each)

    def _fork(self) -> int:
        child = os.fork()
        if not child:
            self._name += "-child"
            path, dot, suffix = self._plan.journal.rpartition(".")
            self._journal = Journal(f"{path}-child{dot}{suffix}")
            self._watch = Stopwatch()
            self._accounted = 0.0
        return child

    def _end(self, child: int) -> None:
        if self._plan.how == "stream":
            self._flush(120.0)
        self._bus.cleanup()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child failed"


def offered(journal: str) -> int:
    """Return the number to go on with behind those that a journal says were offered."""
    path = pathlib.Path(journal)
    said = checker.lines(path) if path.exists() else ()
    return max((line["number"] for line in said if line["what"] == "offered"), default=-1) + 1


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    clock.make_steppable()
    told = Publishing(**json.loads(sys.argv[1]))
    if told.largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (told.largest_file, told.largest_file))
    Publisher(told).run()
