"""Fork safety for authors of drivers; see ``notifier_kafka.contract.after_fork``."""

from notifier_kafka.contract.after_fork import Forked, renewed

__all__ = ["Forked", "renewed"]
