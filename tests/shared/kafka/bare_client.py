"""kafka-python as it is, in a process of its own: it leaves sockets open that failed to connect.

``python bare_client.py SETTINGS_JSON publish TOPIC VALUE...``
``python bare_client.py SETTINGS_JSON read TOPIC COUNT``
"""

import json
import sys
from typing import Any

import kafka

DEADLINE = 60.0


def publish(settings: dict[str, Any], topic: str, *values: str) -> None:
    producer = kafka.KafkaProducer(acks="all", **settings)
    for value in values:
        producer.send(topic, value.encode()).get(DEADLINE)
    producer.close(5)


def read(settings: dict[str, Any], topic: str, count: str) -> None:
    milliseconds = DEADLINE * 1000
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=milliseconds, **settings
    )
    for _ in range(int(count)):
        print(next(consumer).value.decode())
    consumer.close()


if __name__ == "__main__":
    work = publish if sys.argv[2] == "publish" else read
    work(json.loads(sys.argv[1]), *sys.argv[3:])
