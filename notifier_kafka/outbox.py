"""A bounded queue with a worker thread, for authors of drivers; see ``notifier_kafka.contract.outbox``."""

from notifier_kafka.contract.outbox import Deliver, Fates, Landed, Outbox

__all__ = ["Deliver", "Fates", "Landed", "Outbox"]
