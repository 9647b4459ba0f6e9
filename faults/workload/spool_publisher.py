"""Publishes with a spool: ``python -m faults.workload.spool_publisher PLAN``, a ``Plan`` as JSON.

What is in a chunk counts as acknowledged once ``flush`` says that nothing is left, unless
``on_failure`` told of it: it is on the bus or on the disk. Goes on where the journal ends.
"""

import dataclasses
import json
import resource
import signal
import sys
import time
from typing import Any

from faults.history import Journal
from faults.workload.publisher import connect, offered
from notifier_kafka.config import options
from notifier_kafka.errors import MessagingException
from notifier_kafka.notification import Notification
from notifier_kafka.publishing import notifier

CHUNK = 100
KEYS = 20


@dataclasses.dataclass
class Plan:
    """What to publish. ``patience`` is for a chunk; ``linger`` is for the spool to be sent at the end."""

    url: str
    journal: str
    name: str
    topic: str
    count: int
    settings: dict[str, Any]
    chunk: int = CHUNK
    patience: float = 120.0
    linger: float = 0.0
    padding: int = 0
    largest_file: int = 0


class Publisher:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._first = offered(plan.journal)
        self._journal = Journal(plan.journal)
        self._failed: set[str] = set()
        settings = {f"{options.NOTIFICATIONS}.{name}": value for name, value in plan.settings.items()}
        self._bus = connect(plan.url, settings, on_failure=self._fail)
        self._sender = notifier.Notifier(
            self._bus, plan.name, driver="messagingv2", topics=[plan.topic], key="payload:key"
        )

    def run(self) -> None:
        plan = self._plan
        for begin in range(self._first, plan.count, plan.chunk):
            payloads = [self._payload(number) for number in range(begin, min(begin + plan.chunk, plan.count))]
            self._journal.write_all("offered", [{"topic": plan.topic, **each} for each in payloads])
            for payload in payloads:
                self._sender.info({}, "faults.step", {**payload, "padding": "x" * plan.padding})
            if self._sender.flush(plan.patience) == 0:
                kept = [{"id": each["id"]} for each in payloads if each["id"] not in self._failed]
                self._journal.write_all("acknowledged", kept)
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
        self._journal.write("failed", id=each, reason=str(error))


if __name__ == "__main__":
    # Ends like a service that is asked to: with its exit handlers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    plan = Plan(**json.loads(sys.argv[1]))
    if plan.largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.largest_file, plan.largest_file))
    Publisher(plan).run()
