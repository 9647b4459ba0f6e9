"""One end of a latency measurement: ``latency_probe publish|listen ours|bare BOOTSTRAP TOPIC``.

Both ends are processes on one machine and share its monotonic clock. Settings are the defaults, with
the same linger.
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
from notifier_kafka import Notifier, Target, get_notification_listener

CALLS_PER_SECOND = 1_000
Publish = Callable[[dict[str, Any]], None]


def publish(kind: str, bootstrap: str, topic: str) -> None:
    send = (_our_publisher if kind == "ours" else _bare_publisher)(bootstrap, topic)

    def run(count: int) -> None:
        clock, sleep = time.perf_counter, time.sleep
        begin = clock()
        for number in range(count):
            if (early := begin + number / CALLS_PER_SECOND - clock()) > 0:
                sleep(early)
            send({**child_protocol.PAYLOAD, "at": clock()})

    child_protocol.serve(work=run)


def _our_publisher(bootstrap: str, topic: str) -> Publish:
    bus = connect(f"kafka://{bootstrap}/?client=confluent-kafka")
    made = Notifier(bus, child_protocol.PUBLISHER_ID, driver="messagingv2", topics=[topic], key="none")
    return lambda payload: made.info({}, child_protocol.EVENT_TYPE, payload)  # type: ignore[return-value]


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
        value, headers = child_protocol.encode(payload)
        producer.produce(f"{topic}.info", value, headers=headers)
        producer.poll(0)

    return send


class Arrivals:
    """The latency of each notification; it is the endpoint too."""

    def __init__(self) -> None:
        self.took: list[float] = []

    def info(self, _ctxt: Any, _publisher: Any, _event_type: Any, payload: Any, _metadata: Any) -> None:
        self.took.append(time.perf_counter() - payload["at"])

    def finish(self, count: int) -> dict[str, float]:
        deadline = time.monotonic() + child_protocol.TIMEOUT_SECONDS
        while len(self.took) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self.took)} of {count} arrived")
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
    where = [Target(topic=topic)]
    get_notification_listener(bus, where, [arrivals], pool=str(uuid.uuid4())).start()


def _bare_listener(bootstrap: str, topic: str, arrivals: Arrivals) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([f"{topic}.info"])

    def loop() -> None:
        while True:
            message = consumer.poll(1.0)
            if message is not None and not message.error():
                arrivals.info({}, "", "", child_protocol.decode(message.value())["payload"], {})

    threading.Thread(target=loop, daemon=True).start()


{"publish": publish, "listen": listen}[sys.argv[1]](*sys.argv[2:])
