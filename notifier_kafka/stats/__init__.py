"""Counters of notifications, and of those lost. Private; ``Stats`` is in ``notifier_kafka``."""
