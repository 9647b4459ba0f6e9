"""oslo.messaging with its Kafka driver: ``publish|listen|listen-batch BOOTSTRAP TOPIC``."""

import sys
import threading
import time
import uuid
from typing import Any

import confluent_kafka  # type: ignore[import-not-found,unused-ignore]
import oslo_messaging  # type: ignore[import-not-found,unused-ignore]
from oslo_config import cfg

from benchmarks import child_protocol


def connect(bootstrap: str) -> Any:
    conf = cfg.ConfigOpts()
    conf([], project="peer", default_config_files=[], default_config_dirs=[])
    return oslo_messaging.get_notification_transport(conf, f"kafka://{bootstrap}/")


def publish(bootstrap: str, topic: str) -> None:
    transport = connect(bootstrap)
    notifier = oslo_messaging.Notifier(
        transport, child_protocol.PUBLISHER_ID, driver="messagingv2", topics=[topic]
    )

    def work(count: int) -> None:
        info = notifier.info
        for _ in range(count):
            info({}, child_protocol.EVENT_TYPE, child_protocol.PAYLOAD)
        # Its public interface has no flush.
        if transport._driver.pconn.producer.flush(child_protocol.TIMEOUT_SECONDS):  # noqa: SLF001
            raise RuntimeError("not everything was acknowledged")

    work(1)
    child_protocol.serve(work=work)


class Counter:
    """An endpoint that notes when its first call began and its last one ended."""

    filter_rule = oslo_messaging.NotificationFilter(
        publisher_id=r"^compute\.", event_type=r"^compute\.instance\."
    )

    def __init__(self, goal: int) -> None:
        self.goal, self.handled, self.first = goal, 0, 0
        self.began = self.ended = 0.0
        self.done = threading.Event()

    def count(self, number: int) -> None:
        if not self.handled:
            self.began, self.first = time.perf_counter(), number
        self.handled += number
        if self.handled >= self.goal and not self.done.is_set():
            self.ended = time.perf_counter()
            self.done.set()


class Single(Counter):
    def info(self, *_message: Any) -> None:
        self.count(1)


class Batch(Counter):
    def info(self, messages: list[Any]) -> None:
        self.count(len(messages))


def listen(bootstrap: str, topic: str, *, batch: bool) -> None:
    transport = connect(bootstrap)

    def work(count: int) -> float:
        pool = f"oslo-{uuid.uuid4()}"
        _rewind(bootstrap, f"{topic}.info", pool)
        # It drops the first message after every start.
        endpoint: Counter = (Batch if batch else Single)(count - 1)
        where = [oslo_messaging.Target(topic=topic)]
        make, how = oslo_messaging.get_notification_listener, {}
        if batch:
            make = oslo_messaging.get_batch_notification_listener
            how = {"batch_size": child_protocol.BATCH_RECORDS, "batch_timeout": 1}
        listener = make(transport, where, [endpoint], "threading", pool=pool, **how)
        listener.start()
        if not endpoint.done.wait(child_protocol.TIMEOUT_SECONDS):
            raise RuntimeError(f"{endpoint.handled} of {count} arrived")
        listener.stop()
        listener.wait()
        # The messages of the first call arrived before the measurement began.
        seconds = endpoint.ended - endpoint.began
        return seconds * count / max(1, endpoint.handled - endpoint.first)

    child_protocol.serve(work=work)


def _rewind(bootstrap: str, topic: str, group: str) -> None:
    """Commit the first positions for the group: without any it starts at the end."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    partitions = range(child_protocol.PARTITIONS)
    consumer.commit(
        offsets=[confluent_kafka.TopicPartition(topic, each, 0) for each in partitions], asynchronous=False
    )
    consumer.close()


role, *where = sys.argv[1:]
if role == "publish":
    publish(*where)
else:
    listen(*where, batch=role == "listen-batch")
