"""Objects that start afresh in a forked child; they are in ``notifier_kafka.contract.after_fork``."""

from notifier_kafka.contract.after_fork import Forked, renewed

__all__ = ["Forked", "renewed"]
