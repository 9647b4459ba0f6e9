"""The plain bytes client; it is in ``notifier_kafka.bytes_client``."""

from notifier_kafka.bytes_client.client import Consumer, Producer

__all__ = ["Consumer", "Producer"]
