"""Transport URLs, for users and drivers; they are in ``notifier_kafka.contract.url``."""

from notifier_kafka.contract.url import TransportHost, TransportURL, mask

__all__ = ["TransportHost", "TransportURL", "mask"]
