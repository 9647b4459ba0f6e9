"""A listener that writes a history: ``python -m faults.workload.listener PLAN``.

PLAN is a ``ListenerPlan`` as JSON. Its endpoint records each notification before it returns.
SIGTERM ends the process, SIGUSR1 and SIGUSR2 step its clock by an hour.
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

from faults.history import History
from faults.topology import clock, end_with_parent
from faults.workload.publisher import connect
from notifier_kafka import (
    NotificationResult,
    Target,
    get_batch_notification_listener,
    get_notification_listener,
)
from notifier_kafka.driver import Partition
from notifier_kafka.wire import topic_names

Message = dict[str, Any]


@dataclasses.dataclass
class ListenerPlan:
    """What to listen to and how. ``pool`` is the name of the group in the history.

    Each notification takes ``work_seconds``, and every ``nap_every``-th takes ``nap_seconds``.
    Every ``refuse_every``-th is refused the first ``refusals`` times, and a ``refuse_share`` of all
    at random: the endpoint raises, or returns REQUEUE.
    """

    url: str
    history: str
    pool: str
    group: str
    topic: str
    work_seconds: float = 0.0
    batch: bool = False
    nap_seconds: float = 0.0
    nap_every: int = 0
    refuse_every: int = 0
    refuse_share: float = 0.0
    refusals: int = 1
    raises: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    saboteur: str = ""


class Recorder:
    def __init__(self, plan: ListenerPlan) -> None:
        self._plan = plan
        self._history = History(plan.history)
        self._count = 0
        self._seen: collections.Counter[str] = collections.Counter()
        self.positions: Callable[[], Mapping[Partition, int]] = dict

    def begin(self) -> None:
        self._history.write("listening", pool=self._plan.pool, topics=[self._plan.topic])

    def info(
        self, _ctxt: Any, _publisher: Any, _event: Any, payload: Message, metadata: Message
    ) -> str | None:
        self._work()
        if self._refuses(payload):
            self._history.write("refused", pool=self._plan.pool, id=payload["id"], **self._location())
            if self._plan.raises:
                raise ValueError("the plan says so")
            return NotificationResult.REQUEUE
        self._history.write("handled", **self._line(payload, metadata), **self._location())
        return None

    def _location(self) -> Message:
        """Return the location of the current notification, or that it came back after a refusal."""
        # Neither several workers nor a batch endpoint learn the offset of each.
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
            self._history.write("napping")
        time.sleep(self._plan.nap_seconds if naps else self._plan.work_seconds)

    def _refuses(self, payload: Message) -> bool:
        if random.random() < self._plan.refuse_share:
            return True
        if not self._plan.refuse_every or payload["number"] % self._plan.refuse_every:
            return False
        self._seen[payload["id"]] += 1
        return self._seen[payload["id"]] <= self._plan.refusals

    def _line(self, payload: Message, metadata: Message) -> Message:
        payload = {name: payload[name] for name in ("id", "key", "number")}
        return {**payload, "pool": self._plan.pool, "message_id": metadata["message_id"]}


class BatchRecorder(Recorder):
    def info(self, messages: list[Message]) -> None:  # type: ignore[override]
        time.sleep(self._plan.work_seconds * len(messages))
        self._history.write_all("handled", [self._line(m["payload"], m["metadata"]) for m in messages])


def main(plan: ListenerPlan) -> None:
    bus = connect(plan.url, plan.options, plan.saboteur)
    make = get_batch_notification_listener if plan.batch else get_notification_listener
    endpoint = (BatchRecorder if plan.batch else Recorder)(plan)
    each = make(bus, [Target(topic=plan.topic)], [endpoint], allow_requeue=True, pool=plan.group)
    endpoint.positions = each.positions
    ending = threading.Event()

    def end(*_: object) -> None:
        ending.set()
        each.stop()

    signal.signal(signal.SIGTERM, end)
    # From here on SIGTERM ends it in order.
    endpoint.begin()
    each.start()
    if ending.is_set():
        # SIGTERM came before the start, which has begun again: stop once more.
        each.stop()
    each.wait()
    bus.cleanup()


if __name__ == "__main__":
    end_with_parent.end_with_parent()
    clock.make_steppable()
    main(ListenerPlan(**json.loads(sys.argv[1])))
