"""From a subscription to endpoints, and to the commit.

Private; the public names are in ``notifier_kafka``.
"""
