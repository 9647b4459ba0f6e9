"""One end of a way whose time is measured: ``latency publish|listen ours|bare BOOTSTRAP TOPIC``.

All ends are processes of one machine, whose monotonic clock they share. Settings are the
defaults of both, with the same linger.
"""

import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer

from benchmarks import child_protocol
from benchmarks.environment import connect
from notifier_kafka import target
from notifier_kafka.listening import listener
from notifier_kafka.publishing import notifier

PACE = 1_000
Publish = Callable[[dict[str, Any]], None]


def publish(kind: str, bootstrap: str, topic: str) -> None:
    send = (_our_publisher if kind == "ours" else _bare_publisher)(bootstrap, topic)

    def run(count: int) -> None:
        clock, sleep = time.perf_counter, time.sleep
        begin = clock()
        for number in range(count):
            if (early := begin + number / PACE - clock()) > 0:
                sleep(early)
            send({**child_protocol.PAYLOAD, "at": clock()})

    child_protocol.serve(work=run)


def _our_publisher(bootstrap: str, topic: str) -> Publish:
    bus = connect(f"kafka://{bootstrap}/?client=confluent-kafka")
    made = notifier.Notifier(bus, child_protocol.PUBLISHER, driver="messagingv2", topics=[topic], key="none")
    return lambda payload: made.info({}, child_protocol.EVENT, payload)  # type: ignore[return-value]


def _bare_publisher(bootstrap: str, topic: str) -> Publish:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": child_protocol.LINGER_MS,
        }
    )

    def send(payload: dict[str, Any]) -> None:
        value, headers = child_protocol.message(payload)
        producer.produce(f"{topic}.info", value, headers=headers)
        producer.poll(0)

    return send


class Arrivals:
    """How long each took; an endpoint as well."""

    def __init__(self) -> None:
        self.took: list[float] = []

    def info(self, _ctxt: Any, _publisher: Any, _event_type: Any, payload: Any, _metadata: Any) -> None:
        self.took.append(time.perf_counter() - payload["at"])

    def finish(self, count: int) -> dict[str, float]:
        deadline = time.monotonic() + child_protocol.PATIENCE
        while len(self.took) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self.took)} of {count} came")
            time.sleep(0.01)
        took = sorted(self.took)
        self.took.clear()
        return {"p50": took[len(took) // 2] * 1e6, "p99": took[int(len(took) * 0.99)] * 1e6}


def listen(kind: str, bootstrap: str, topic: str) -> None:
    arrivals = Arrivals()
    (_our_listener if kind == "ours" else _bare_listener)(bootstrap, topic, arrivals)
    child_protocol.serve(finish=arrivals.finish)


def _our_listener(bootstrap: str, topic: str, arrivals: Arrivals) -> None:
    bus = connect(f"kafka://{bootstrap}/?client=confluent-kafka")
    where = [target.Target(topic=topic)]
    listener.get_notification_listener(bus, where, [arrivals], pool=str(uuid.uuid4())).start()


def _bare_listener(bootstrap: str, topic: str, arrivals: Arrivals) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([f"{topic}.info"])

    def loop() -> None:
        while True:
            message = consumer.poll(1.0)
            if message is not None and not message.error():
                arrivals.info({}, "", "", child_protocol.opened(message.value())["payload"], {})

    threading.Thread(target=loop, daemon=True).start()


{"publish": publish, "listen": listen}[sys.argv[1]](*sys.argv[2:])
