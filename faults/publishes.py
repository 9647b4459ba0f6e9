"""A publisher with a journal: ``python -m faults.publishes PLAN``, a ``Publishing`` as JSON.

Every notification is journalled before its call and after it. SIGTERM ends it after the
call under way, SIGUSR1 and SIGUSR2 step its clock an hour.
"""

import dataclasses
import json
import os
import signal
import sys
import time
from typing import Any

from oslo_config import cfg

from faults import breakages, clock, tether
from faults.journal import Journal
from notifier_kafka import notifier, topics, transport
from notifier_kafka.driver import Limits, Record
from notifier_kafka.errors import MessagingException


@dataclasses.dataclass
class Publishing:
    """What to publish and how.

    ``how``: ``wait`` for each, ``chunk`` waits for twenty at a time, ``stream`` waits at the
    end for all. ``poison``: every so many is no notification. ``fork_at``: from that number
    on a child does the same beside it, with the notifier made before the fork.
    """

    url: str
    journal: str
    name: str
    topic: str
    count: int
    how: str = "chunk"
    rate: float = 0.0
    keys: int = 20
    poison: int = 0
    fork_at: int = 0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    breakage: str = ""


def connect(url: str, options: dict[str, Any], breakage: str = "") -> transport.NotificationTransport:
    conf = cfg.ConfigOpts()
    conf([], project="faults", default_config_files=[], default_config_dirs=[])
    bus = transport.get_notification_transport(conf, url)
    for name, value in options.items():
        group, _, option = name.rpartition(".")
        conf.set_override(option, value, group=group)
    if breakage:
        bus.driver = breakages.broken(bus.driver, breakage)
    return bus


class Publisher:
    def __init__(self, plan: Publishing) -> None:
        self._plan = plan
        self._name = plan.name
        self._journal = Journal(plan.journal)
        self._bus = connect(plan.url, plan.options, plan.breakage)
        self._plain = notifier.Notifier(
            self._bus, plan.name, driver="messagingv2", topics=[plan.topic], key="payload:key"
        )
        self._waiting = self._plain.prepare(wait=True)
        self._stopped = False
        signal.signal(signal.SIGTERM, self._stop)

    def run(self) -> None:
        plan = self._plan
        step = 20 if plan.how == "chunk" else 1
        child = 0
        for begin in range(0, plan.count, step):
            if self._stopped:
                break
            if plan.fork_at and begin == plan.fork_at - plan.fork_at % step:
                child = self._fork()
            numbers = range(begin, min(begin + step, plan.count))
            getattr(self, f"_{plan.how}")([self._offer(number) for number in numbers])
            if plan.poison and begin % plan.poison == 0:
                self._poison(begin)
            if plan.rate:
                time.sleep(step / plan.rate)
        self._end(child)

    def _stop(self, *_: object) -> None:
        self._stopped = True

    def _offer(self, number: int) -> dict[str, Any]:
        key = f"{self._name}.{number % self._plan.keys}"
        payload = {"id": f"{self._name}-{number}", "key": key, "number": number}
        self._journal.write("offered", topic=self._plan.topic, **payload)
        return payload

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
            self._waiting.send_many({}, "info", [("faults.step", payload) for payload in payloads])
        except MessagingException as error:
            self._journal.write_all("failed", [each | {"reason": str(error)} for each in ids])
        else:
            self._journal.write_all("acknowledged", ids)

    def _stream(self, payloads: list[dict[str, Any]]) -> None:
        self._plain.info({}, "faults.step", payloads[0])
        self._journal.write("accepted", id=payloads[0]["id"])

    def _poison(self, number: int) -> None:
        """Put bytes on the topic that are no notification; they are promised to be set aside."""
        each = {"id": f"{self._name}-poison-{number}"}
        self._journal.write("offered", topic=self._plan.topic, key=None, number=number, **each)
        failures: list[MessagingException] = []
        publisher = self._bus.driver.publisher(lambda _, error: failures.append(error), Limits())
        publisher.offer(
            Record(topics.bus_topic(self._plan.topic, "info"), b"\xff" + json.dumps(each).encode())
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
        return child

    def _end(self, child: int) -> None:
        if self._plan.how == "stream":
            left = self._plain.flush(120.0)
            lost = [name for name in self._bus.accounts.counts() if name.startswith("lost.")]
            # Which of them were lost nobody says; so none is taken for acknowledged.
            self._journal.write("flushed", left=left if not lost else -1)
        self._bus.cleanup()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child failed"


if __name__ == "__main__":
    tether.end_with_parent()
    clock.make_steppable()
    Publisher(Publishing(**json.loads(sys.argv[1]))).run()
