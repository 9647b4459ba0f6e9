"""Transport URLs; see ``notifier_kafka.config.transport_url``."""

from notifier_kafka.config.transport_url import TransportURL
from notifier_kafka.contract.secret_masking import mask_transport_url as mask
from notifier_kafka.contract.url import TransportHost

__all__ = ["TransportHost", "TransportURL", "mask"]
