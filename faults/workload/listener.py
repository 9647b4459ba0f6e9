"""A listener with a journal: ``python -m faults.workload.listener PLAN``, a ``Listening`` as JSON.

What its endpoint handled is journalled before the endpoint returns. SIGTERM ends it,
SIGUSR1 and SIGUSR2 step its clock an hour.
"""

import collections
import dataclasses
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from faults.history import Journal
from faults.topology import clock, end_with_parent
from faults.workload.publisher import connect
from notifier_kafka.contract.driver import Partition
from notifier_kafka.listening import listener
from notifier_kafka.notification import NotificationResult
from notifier_kafka.target import Target
from notifier_kafka.wire import topic_names

Message = dict[str, Any]


@dataclasses.dataclass
class Listening:
    """What to listen to and how. ``pool`` is what the journal calls the group.

    ``work`` is seconds for each, and each ``nap_every``-th takes ``nap`` seconds. Every
    ``refuse``-th is refused the first ``times`` times, and a ``refuse_share`` of all at random,
    by raising or by asking for it again.
    """

    url: str
    journal: str
    pool: str
    group: str
    topic: str
    work: float = 0.0
    batch: bool = False
    nap: float = 0.0
    nap_every: int = 0
    refuse: int = 0
    refuse_share: float = 0.0
    times: int = 1
    raises: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    breakage: str = ""


class Recorder:
    def __init__(self, plan: Listening) -> None:
        self._plan = plan
        self._journal = Journal(plan.journal)
        self._count = 0
        self._seen: collections.Counter[str] = collections.Counter()
        self.positions: Callable[[], Mapping[Partition, int]] = dict

    def begin(self) -> None:
        self._journal.write("listening", pool=self._plan.pool, topics=[self._plan.topic])

    def info(
        self, _ctxt: Any, _publisher: Any, _event: Any, payload: Message, metadata: Message
    ) -> str | None:
        self._work()
        if self._refuses(payload):
            self._journal.write("refused", pool=self._plan.pool, id=payload["id"], **self._place())
            if self._plan.raises:
                raise ValueError("as the plan has it")
            return NotificationResult.REQUEUE
        self._journal.write("handled", **self._line(payload, metadata), **self._place())
        return None

    def _place(self) -> Message:
        """Say where the notification at hand is on the log, or that it came back after a refusal."""
        # Not told to several workers, nor of each in a batch.
        if self._plan.options.get("listener.workers", 1) > 1 or len(found := self.positions()) != 1:
            return {}
        ((partition, following),) = found.items()
        if partition.topic != topic_names.bus_topic(self._plan.topic, "info"):
            return {"returned": True}
        return {"partition": partition.number, "offset": following - 1}

    def _work(self) -> None:
        self._count += 1
        naps = self._plan.nap_every and self._count % self._plan.nap_every == 0
        if naps:
            self._journal.write("napping")
        time.sleep(self._plan.nap if naps else self._plan.work)

    def _refuses(self, payload: Message) -> bool:
        if random.random() < self._plan.refuse_share:
            return True
        if not self._plan.refuse or payload["number"] % self._plan.refuse:
            return False
        self._seen[payload["id"]] += 1
        return self._seen[payload["id"]] <= self._plan.times

    def _line(self, payload: Message, metadata: Message) -> Message:
        payload = {name: payload[name] for name in ("id", "key", "number")}
        return {**payload, "pool": self._plan.pool, "message_id": metadata["message_id"]}


class BatchRecorder(Recorder):
    def info(self, messages: list[Message]) -> None:  # type: ignore[override]
        time.sleep(self._plan.work * len(messages))
        self._journal.write_all("handled", [self._line(m["payload"], m["metadata"]) for m in messages])


def main(plan: Listening) -> None:
    bus = connect(plan.url, plan.options, plan.breakage)
    make = listener.get_batch_notification_listener if plan.batch else listener.get_notification_listener
    endpoint = (BatchRecorder if plan.batch else Recorder)(plan)
    each = make(bus, [Target(topic=plan.topic)], [endpoint], allow_requeue=True, pool=plan.group)
    endpoint.positions = each.positions
    ending = threading.Event()

    def end(*_: object) -> None:
        ending.set()
        each.stop()

    signal.signal(signal.SIGTERM, end)
    # From here on it ends as it should.
    endpoint.begin()
    each.start()
    if ending.is_set():
        # A start that comes after a stop begins anew.
        each.stop()
    each.wait()
    bus.cleanup()


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    clock.make_steppable()
    main(Listening(**json.loads(sys.argv[1])))
