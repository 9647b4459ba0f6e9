"""A bounded queue and a worker thread for drivers; it is in ``notifier_kafka.contract.outbox``."""

from notifier_kafka.contract.outbox import Deliver, Fates, Landed, Outbox

__all__ = ["Deliver", "Fates", "Landed", "Outbox"]
