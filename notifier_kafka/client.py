"""The plain bytes client; see ``notifier_kafka.bytes_client.client``."""

from notifier_kafka.bytes_client.client import Consumer, Producer

__all__ = ["Consumer", "Producer"]
