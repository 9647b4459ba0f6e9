"""Publishes with a spool: ``python -m faults.workload.spool_publisher PLAN``, a ``SpoolPlan`` as JSON.

A chunk counts as acknowledged once ``flush`` returns 0, without those that ``on_failure``
reported: it is on the bus or on the disk. The process continues behind the end of its history.
"""

import dataclasses
import json
import resource
import signal
import sys
import time
from typing import Any

from faults.history import History
from faults.workload.publisher import connect, next_number
from notifier_kafka import Notification, Notifier
from notifier_kafka.config import options
from notifier_kafka.errors import MessagingException

CHUNK_RECORDS = 100
KEYS = 20


@dataclasses.dataclass
class SpoolPlan:
    """What to publish. ``flush_timeout`` is for a chunk, ``linger`` for the spool at the end."""

    url: str
    history: str
    name: str
    topic: str
    count: int
    settings: dict[str, Any]
    chunk: int = CHUNK_RECORDS
    flush_timeout: float = 120.0
    linger: float = 0.0
    padding: int = 0
    max_file_bytes: int = 0


class Publisher:
    def __init__(self, plan: SpoolPlan) -> None:
        self._plan = plan
        self._first = next_number(plan.history)
        self._history = History(plan.history)
        self._failed: set[str] = set()
        settings = {f"{options.NOTIFICATIONS}.{name}": value for name, value in plan.settings.items()}
        self._bus = connect(plan.url, settings, on_failure=self._fail)
        self._sender = Notifier(
            self._bus, plan.name, driver="messagingv2", topics=[plan.topic], key="payload:key"
        )

    def run(self) -> None:
        plan = self._plan
        for begin in range(self._first, plan.count, plan.chunk):
            payloads = [self._payload(number) for number in range(begin, min(begin + plan.chunk, plan.count))]
            self._history.write_all("offered", [{"topic": plan.topic, **each} for each in payloads])
            for payload in payloads:
                self._sender.info({}, "faults.step", {**payload, "padding": "x" * plan.padding})
            if self._sender.flush(plan.flush_timeout) == 0:
                kept = [{"id": each["id"]} for each in payloads if each["id"] not in self._failed]
                self._history.write_all("acknowledged", kept)
        deadline = time.monotonic() + plan.linger
        while self._sender.stats().waiting and time.monotonic() < deadline:
            time.sleep(0.05)
        self._bus.cleanup()

    def _payload(self, number: int) -> dict[str, Any]:
        name = self._plan.name
        return {"id": f"{name}-{number}", "key": f"{name}.{number % KEYS}", "number": number}

    def _fail(self, notification: Notification, error: MessagingException) -> None:
        each = notification.payload["id"]
        self._failed.add(each)
        self._history.write("failed", id=each, reason=str(error))


if __name__ == "__main__":
    # Ends as a service does: with its exit handlers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    plan = SpoolPlan(**json.loads(sys.argv[1]))
    if plan.max_file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.max_file_bytes, plan.max_file_bytes))
    Publisher(plan).run()
