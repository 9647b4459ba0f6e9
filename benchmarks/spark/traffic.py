"""The notifications for the Spark benchmark: about 300 bytes each, from the last half hour."""

import time
from collections.abc import Iterator

import orjson

from benchmarks.bare_clients import TIMEOUT_SECONDS, InvalidMeasurement
from notifier_kafka.driver import Driver, Headers, Limits, Record
from notifier_kafka.publishing import message_ids

PARTITIONS = 4
_OPERATIONS = ("create.start", "create.end", "exists", "update", "attach", "detach", "sync", "error")


def publish(bootstrap: str, topic: str, count: int, seed: int = 9) -> None:
    """Publish to Kafka without this package, as fast as possible."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 500_000}
    )
    for number, record in enumerate(_records(topic, count, seed)):
        while True:
            try:
                headers = list(record.headers)
                producer.produce(topic, record.value, headers=headers, partition=number % PARTITIONS)
            except BufferError:
                producer.poll(0.05)
            else:
                break
    if producer.flush(TIMEOUT_SECONDS):
        raise InvalidMeasurement("not everything was acknowledged")


def append(driver: Driver, topic: str, count: int, seed: int = 9) -> None:
    """Publish through a driver."""
    publisher = driver.publisher(_refuse, Limits(count, 1 << 30))
    for record in _records(topic, count, seed):
        publisher.offer(record)
    if publisher.flush(TIMEOUT_SECONDS):
        raise InvalidMeasurement("not everything was written")
    publisher.close()


def _refuse(_record: Record, error: Exception) -> None:
    raise error


def _records(topic: str, count: int, seed: int) -> Iterator[Record]:
    begin = time.time() - 1800
    for number in range(count):
        value, headers = _encoded(number, begin + number * 1800 / count, seed)
        yield Record(topic, value, str(number).encode(), headers)


def _encoded(number: int, at: float, seed: int) -> tuple[bytes, Headers]:
    operation = _OPERATIONS[number % 8]
    event_type, priority = f"compute.instance.{operation}", "ERROR" if operation == "error" else "INFO"
    publisher, message_id = f"compute.host{number % 20}", message_ids.new_message_id()
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) + f"{at % 1:.6f}"[1:]
    inner = {
        "message_id": message_id,
        "publisher_id": publisher,
        "event_type": event_type,
        "priority": priority,
        "payload": {"instance_id": f"i-{seed}-{number // 8}", "size": number % 1000},
        "timestamp": moment,
        "_context": {},
    }
    # With the spaces that the channel writes.
    value = b'{"oslo.version": "2.0", "oslo.message": ' + orjson.dumps(orjson.dumps(inner).decode()) + b"}"
    texts = {
        "priority": priority,
        "message-id": message_id,
        "event-type": event_type,
        "publisher-id": publisher,
    }
    return value, (("content-type", b"application/json"), *((k, v.encode()) for k, v in texts.items()))
